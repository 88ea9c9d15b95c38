//! How a conversation opens: system prompt, task, and the read that the model made earlier.

use crate::case::Case;
use crate::chat::Message;
use crate::tool::EditTool;

use super::settings::Prompt;

/// The one system prompt, for all.
pub(super) const SYSTEM_PROMPT: &str = include_str!("system_prompt.md");

/// System prompt and task. A case without a target, such as one with several edits or none, has no directed words: the
/// task is all that can be said.
pub(super) fn messages(case: &Case, tool: &dyn EditTool, prompt: Prompt) -> Vec<Message> {
    let text = match (prompt, &case.target) {
        (Prompt::Plain, _) | (Prompt::Directed, None) => case.task.clone(),
        (Prompt::Directed, Some(target)) => {
            let words = tool.direct(target, case.as_read(&target.path).unwrap_or_default());
            format!("{}\n\n{words}", case.task)
        }
    };
    vec![Message::System { text: SYSTEM_PROMPT.trim_end().to_owned() }, Message::User { text }]
}

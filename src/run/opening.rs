//! How a conversation opens: system prompt, task, and the read that the model made earlier.

use crate::case::Case;
use crate::chat::Message;
use crate::tool::EditTool;

use super::settings::Prompt;

/// The one system prompt, for all.
pub(super) const SYSTEM_PROMPT: &str = include_str!("system_prompt.md");

/// System prompt and task. A case without a target has no directed words.
pub(super) fn messages(case: &Case, tool: &dyn EditTool, prompt: Prompt) -> Result<Vec<Message>, String> {
    let text = match prompt {
        Prompt::Plain => case.task.clone(),
        Prompt::Directed => {
            let target = case.target.as_ref().ok_or("the case has no target, so there are no directed words for it")?;
            let words = tool.direct(target, case.as_read(&target.path).unwrap_or_default());
            format!("{}\n\n{words}", case.task)
        }
    };
    Ok(vec![Message::System { text: SYSTEM_PROMPT.trim_end().to_owned() }, Message::User { text }])
}

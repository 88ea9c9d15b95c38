//! Known providers: what they speak, where they listen, which variable holds their key. Everything can be overridden.

use serde_json::{Map, Value, json};

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Provider {
    pub name: &'static str,
    /// Its wire protocol, by name.
    pub protocol: &'static str,
    pub base_url: &'static str,
    /// The environment variable that holds the key.
    pub key_env: &'static str,
    pub needs_key: bool,
    pub about: &'static str,
}

/// One that is reached over the net and wants a key.
const fn remote(
    name: &'static str,
    protocol: &'static str,
    base_url: &'static str,
    key_env: &'static str,
    about: &'static str,
) -> Provider {
    Provider { name, protocol, base_url, key_env, needs_key: true, about }
}

/// One that runs beside its user, with or without a key.
const fn local(
    name: &'static str,
    protocol: &'static str,
    base_url: &'static str,
    key_env: &'static str,
    about: &'static str,
) -> Provider {
    Provider { name, protocol, base_url, key_env, needs_key: false, about }
}

/// The known ones. With --base-url each is any server that speaks its protocol.
pub const PROVIDERS: [Provider; 12] = [
    remote("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OpenAI, Chat Completions"),
    remote("openai-responses", "openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY", "OpenAI, Responses"),
    remote("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "Anthropic, Messages"),
    remote(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com",
        "GEMINI_API_KEY",
        "Google, generateContent",
    ),
    local("ollama", "ollama", "http://127.0.0.1:11434", "OLLAMA_API_KEY", "Ollama, its own chat protocol"),
    local("llamacpp", "openai", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", "llama.cpp's llama-server"),
    local("vllm", "openai", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", "vLLM"),
    local("lmstudio", "openai", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", "LM Studio"),
    remote("openrouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OpenRouter"),
    remote("groq", "openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "Groq"),
    remote("mistral", "openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "Mistral"),
    remote("deepseek", "openai", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "DeepSeek"),
];

impl Provider {
    pub fn named(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Body fields that this provider gets unless the settings say otherwise.
    pub fn extra(&self) -> Map<String, Value> {
        let field = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
        match self.name {
            // With its prompt cache, llama.cpp's answers at temperature 0 depend on what it was asked before.
            "llamacpp" => field("cache_prompt", json!(false)),
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::protocol;

    #[test]
    fn each_speaks_a_known_protocol() {
        for provider in &PROVIDERS {
            assert!(protocol::named(provider.protocol).is_some(), "{}", provider.name);
        }
    }
}

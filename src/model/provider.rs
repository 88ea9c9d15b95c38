//! Known providers: where they listen, which variable holds their key. Everything can be overridden.

use serde_json::{Map, Value, json};

/// A provider that speaks Chat Completions.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub name: &'static str,
    pub base_url: &'static str,
    /// The environment variable that holds the key.
    pub key_env: &'static str,
    pub needs_key: bool,
    pub about: &'static str,
}

/// The known ones. `openai` with another base URL is any compatible server.
pub const PROVIDERS: [Provider; 5] = [
    Provider {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        key_env: "OPENAI_API_KEY",
        needs_key: true,
        about: "OpenAI, and with --base-url any server that speaks Chat Completions",
    },
    Provider {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_env: "LLAMA_API_KEY",
        needs_key: false,
        about: "llama.cpp's llama-server",
    },
    Provider {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key_env: "OLLAMA_API_KEY",
        needs_key: false,
        about: "Ollama",
    },
    Provider {
        name: "vllm",
        base_url: "http://127.0.0.1:8000/v1",
        key_env: "VLLM_API_KEY",
        needs_key: false,
        about: "vLLM",
    },
    Provider {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env: "OPENROUTER_API_KEY",
        needs_key: true,
        about: "OpenRouter",
    },
];

impl Provider {
    pub fn named(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Body fields that this provider gets unless the settings say otherwise.
    pub fn extra(&self) -> Map<String, Value> {
        match self.name {
            // With its prompt cache, llama.cpp's answers at temperature 0 depend on what it was asked before.
            "llamacpp" => Map::from_iter([("cache_prompt".to_owned(), json!(false))]),
            _ => Map::new(),
        }
    }
}

/// The URL to call for a base URL as a user writes it: with or without a path, a slash at the end, or the whole of it.
pub fn chat_url(base: &str) -> String {
    let (base, query) = match base.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base, String::new()),
    };
    let base = base.trim_end_matches('/');
    if base.ends_with("/chat/completions") {
        return format!("{base}{query}");
    }
    let after_scheme = base.split_once("://").map_or(base, |(_, rest)| rest);
    if after_scheme.contains('/') {
        format!("{base}/chat/completions{query}")
    } else {
        format!("{base}/v1/chat/completions{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_as_users_write_them() {
        let table = [
            ("https://api.example.com/inference/v1", "https://api.example.com/inference/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
            ("http://localhost:1234/", "http://localhost:1234/v1/chat/completions"),
            ("http://h/v1?api-version=2", "http://h/v1/chat/completions?api-version=2"),
            ("http://localhost:1234/v1/chat/completions", "http://localhost:1234/v1/chat/completions"),
        ];
        for (base, url) in table {
            assert_eq!(chat_url(base), url);
        }
    }
}

//! A tool served over the Model Context Protocol: its functions as they are offered to a model, one session for as long
//! as the client stays. With the official SDK; what a refusal is to a model it is to a client: a result marked as an
//! error, never a fault of the protocol.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{EditTool, Offered, Outcome, Session};

/// Where the receipt of a call lies in a result's `_meta`: kind, notes, and each write that happened under `files`.
pub const RECEIPT: &str = "editgate/receipt";

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("the client did not begin as the protocol says: {0}")]
    Start(Box<ServerInitializeError>),
    #[error("the server ended early: {0}")]
    End(#[from] tokio::task::JoinError),
}

/// Serves the tool until the client goes away. A client that closes before it says anything is no error.
///
/// # Errors
/// When the client does not speak the protocol.
pub async fn serve(
    tool: &dyn EditTool,
    session: Box<dyn Session>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let served = Served { name: tool.name(), functions: tool.functions(), session: Mutex::new(session) };
    match served.serve((input, output)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(ServeError::from),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Start(Box::new(error))),
    }
}

struct Served {
    name: &'static str,
    functions: Vec<Offered>,
    /// One call at a time: two calls on one file never run at once.
    session: Mutex<Box<dyn Session>>,
}

impl Served {
    fn call(&self, request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        if !self.functions.iter().any(|offered| offered.function.name == request.name) {
            let names: Vec<&str> = self.functions.iter().map(|offered| offered.function.name.as_str()).collect();
            let message = format!("there is no tool {}; there are: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = request.arguments.clone().unwrap_or_default();
        // A panic of another call cannot leave a session half changed: it writes last, and in one step.
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = session
            .call(&request.name, &arguments)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(result(outcome).into())
    }
}

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(format!("editgate {}", self.name), env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.functions.iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(&request)
    }
}

fn described(offered: &Offered) -> Tool {
    let function = &offered.function;
    let schema = match &function.parameters {
        Value::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    let hints = ToolAnnotations::from_raw(None, Some(!offered.edits), Some(offered.edits), None, Some(false));
    Tool::new(function.name.clone(), function.description.clone(), Arc::new(schema)).with_annotations(hints)
}

fn result(outcome: Outcome) -> CallToolResult {
    let files: Vec<Value> = outcome
        .writes
        .iter()
        .map(|write| {
            json!({
                "path": write.path,
                "mode": write.mode,
                "created": write.created,
                "bytesBefore": write.bytes_before,
                "bytesAfter": write.bytes_after,
            })
        })
        .collect();
    let receipt = json!({ "kind": outcome.kind, "notes": outcome.notes, "files": files });
    let content = vec![ContentBlock::text(outcome.text)];
    let mut result = if outcome.ok { CallToolResult::success(content) } else { CallToolResult::error(content) };
    result.meta = Some(MetaObject(Map::from_iter([(RECEIPT.to_owned(), receipt)])));
    result
}

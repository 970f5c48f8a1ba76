//! A collector of traces: takes what comes over OTLP and keeps it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Router, serve};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

/// One, until it is dropped.
pub(crate) struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
    task: tokio::task::JoinHandle<()>,
}

/// What it was given.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    /// In the order in which they came.
    pub(crate) spans: Vec<Span>,
    /// Of the program that sent them.
    pub(crate) resource: Vec<KeyValue>,
    /// Of the last request.
    pub(crate) headers: HeaderMap,
}

impl Collector {
    /// One that answers.
    pub(crate) async fn start() -> Self {
        let taken = Arc::<Mutex<Taken>>::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&taken));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move { serve(listener, router).await.expect("it serves") });
        Self { address, taken, task }
    }

    /// One that accepts and says nothing.
    pub(crate) async fn hanging() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((socket, _)) = listener.accept().await {
                held.push(socket);
            }
        });
        Self { address, taken: Arc::default(), task }
    }

    /// What a broker is told of it.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it has by now.
    pub(crate) fn taken(&self) -> Taken {
        self.taken.lock().expect("no handler panicked").clone()
    }
}

impl Taken {
    /// The spans of a trace of a name.
    pub(crate) fn of(&self, trace_id: &str, name: &str) -> Vec<&Span> {
        let is_it = |span: &&Span| hex(&span.trace_id) == trace_id && span.name == name;
        self.spans.iter().filter(is_it).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(taken): State<Arc<Mutex<Taken>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let request = ExportTraceServiceRequest::decode(body).expect("what OTLP says");
    let mut taken = taken.lock().expect("no handler panicked");
    taken.headers = headers;
    for of_resource in request.resource_spans {
        taken.resource = of_resource.resource.expect("a resource").attributes;
        taken.spans.extend(of_resource.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans));
    }
    StatusCode::OK
}

/// An id as texts have it.
pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute; texts and numbers are all there are.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let value = attributes.iter().find(|one| one.key == name)?.value.as_ref();
    Some(match value? {
        AnyValue { value: Some(Value::StringValue(text)) } => text.clone(),
        AnyValue { value: Some(Value::IntValue(number)) } => number.to_string(),
        AnyValue { value: Some(Value::DoubleValue(number)) } => number.to_string(),
        other => panic!("{name}: {other:?}"),
    })
}

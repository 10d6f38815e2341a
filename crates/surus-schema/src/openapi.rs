//! An OpenAPI 3.1 document of an application's routes.

use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::description::{Class, ClassKind, Description};
use crate::json_schema::Writer;

/// The place of named schemas in an OpenAPI document.
const COMPONENTS: &str = "#/components/schemas/";
const PROBLEM: &str = "application/problem+json";

/// The description of an application by `Surus\Schema\OpenApi`.
#[derive(Debug, Deserialize)]
struct Application {
    /// OpenAPI's Info object.
    info: Map<String, Value>,
    #[serde(default)]
    servers: Vec<Value>,
    routes: Vec<Route>,
    /// Schemas of values that handlers return, by name.
    #[serde(default)]
    schemas: Map<String, Value>,
    /// Security schemes, by name.
    #[serde(default)]
    security: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Route {
    methods: Vec<String>,
    /// In the notation of OpenAPI.
    path: String,
    id: String,
    summary: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    deprecated: bool,
    /// Parameter objects of OpenAPI.
    #[serde(default)]
    parameters: Vec<Value>,
    #[serde(default)]
    inputs: Vec<RouteInput>,
    /// Security Requirement Objects of OpenAPI.
    #[serde(default)]
    security: Vec<Value>,
    /// Requests without credentials, or with wrong ones, are refused.
    #[serde(default)]
    unauthorized: bool,
    /// By status.
    responses: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct RouteInput {
    /// "body" or "query".
    from: String,
    #[serde(default)]
    json: bool,
    #[serde(default)]
    form: bool,
    schema: Description,
}

/// Builds the document from the JSON that `Surus\Schema\OpenApi` writes.
pub fn build(text: &str) -> Result<String, String> {
    let application: Application =
        serde_json::from_str(text).map_err(|error| format!("routes: {error}"))?;
    let mut schemas = Map::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in &application.routes {
        let operation = operation(route, &mut schemas);
        for method in &route.methods {
            let mut operation = operation.clone();
            if route.methods.len() > 1 {
                let id = format!("{}{}", method.to_ascii_lowercase(), upper_first(&route.id));
                operation["operationId"] = id.into();
            }
            let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
            // Of two routes with the same path, the router finds the first one.
            if let Some(path) = path.as_object_mut() {
                path.entry(method.to_ascii_lowercase()).or_insert(operation);
            }
        }
    }
    schemas.extend(application.schemas);
    if application.routes.iter().any(Route::refuses) {
        schemas.insert("Problem".into(), problem());
        schemas.insert("Violation".into(), violation());
    }
    let mut document = Map::new();
    document.insert("openapi".into(), "3.1.0".into());
    document.insert("info".into(), application.info.into());
    if !application.servers.is_empty() {
        document.insert("servers".into(), application.servers.into());
    }
    document.insert("paths".into(), paths.into());
    let mut components = Map::new();
    if !schemas.is_empty() {
        components.insert("schemas".into(), schemas.into());
    }
    if !application.security.is_empty() {
        components.insert("securitySchemes".into(), application.security.into());
    }
    if !components.is_empty() {
        document.insert("components".into(), components.into());
    }
    serde_json::to_string_pretty(&document).map_err(|error| error.to_string())
}

fn upper_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

fn operation(route: &Route, schemas: &mut Map<String, Value>) -> Value {
    let mut operation = Map::new();
    if !route.tags.is_empty() {
        operation.insert("tags".into(), json!(route.tags));
    }
    if let Some(text) = &route.summary {
        operation.insert("summary".into(), text.as_str().into());
    }
    if let Some(text) = &route.description {
        operation.insert("description".into(), text.as_str().into());
    }
    operation.insert("operationId".into(), route.id.as_str().into());
    let mut parameters = route.parameters.clone();
    let mut body = None;
    for input in &route.inputs {
        let writer = Writer {
            description: &input.schema,
            at: COMPONENTS,
        };
        let mut definitions = writer.definitions();
        if input.from == "query" {
            // Its properties are parameters: the document has no schema for the class itself.
            definitions.retain(|(title, _)| *title != input.title());
            parameters.extend(query_parameters(input, &writer));
        } else {
            body = Some(request_body(input, &writer));
        }
        schemas.extend(definitions);
    }
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    let mut responses = route.responses.clone();
    if let Some(body) = body {
        operation.insert("requestBody".into(), body);
        refuse(&mut responses, "400", "The body is not well-formed.");
        refuse(&mut responses, "413", "The body is too long.");
        refuse(&mut responses, "415", "The body has another media type.");
    }
    if route.has_scalars() {
        refuse(
            &mut responses,
            "400",
            "A value is missing, or of another type.",
        );
    }
    if route.unauthorized {
        let without = "There are no credentials, or wrong ones.";
        refuse(&mut responses, "401", without);
    }
    if !route.security.is_empty() {
        operation.insert("security".into(), json!(route.security));
    }
    if !route.inputs.is_empty() {
        refuse(&mut responses, "422", "The input is not valid.");
    }
    operation.insert("responses".into(), responses.into());
    if route.deprecated {
        operation.insert("deprecated".into(), true.into());
    }
    Value::Object(operation)
}

impl Route {
    /// Whether it has arguments that are read from single values of the request.
    fn has_scalars(&self) -> bool {
        self.parameters.iter().any(|each| each["in"] != "path")
    }

    /// Whether requests may be refused because of their input or credentials.
    fn refuses(&self) -> bool {
        !self.inputs.is_empty() || self.has_scalars() || self.unauthorized
    }
}

impl RouteInput {
    fn title(&self) -> &str {
        let root = self.schema.classes.get(usize::from(self.schema.root));
        root.map_or("", |class| class.title.as_str())
    }
}

fn request_body(input: &RouteInput, writer: &Writer<'_>) -> Value {
    let schema = json!({"schema": {"$ref": writer.reference(input.schema.root)}});
    let mut content = Map::new();
    if input.json {
        content.insert("application/json".into(), schema.clone());
    }
    if input.form {
        // Only multipart/form-data can contain files.
        let files = |class: &Class| matches!(class.kind, ClassKind::File);
        if !input.schema.classes.iter().any(files) {
            content.insert("application/x-www-form-urlencoded".into(), schema.clone());
        }
        content.insert("multipart/form-data".into(), schema);
    }
    json!({"required": true, "content": content})
}

fn query_parameters(input: &RouteInput, writer: &Writer<'_>) -> Vec<Value> {
    let root = input.schema.classes.get(usize::from(input.schema.root));
    let Some(ClassKind::Object { properties, .. }) = root.map(|class| &class.kind) else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|property| {
            let mut schema = writer.property(property);
            let description = schema
                .as_object_mut()
                .and_then(|schema| schema.shift_remove("description"));
            let mut parameter = json!({"name": property.name, "in": "query"});
            if let Some(text) = description {
                parameter["description"] = text;
            }
            if property.required {
                parameter["required"] = true.into();
            }
            parameter["schema"] = schema;
            parameter
        })
        .collect()
}

fn refuse(responses: &mut Map<String, Value>, status: &str, description: &str) {
    responses.entry(status).or_insert_with(|| {
        json!({
            "description": description,
            "content": {PROBLEM: {"schema": {"$ref": format!("{COMPONENTS}Problem")}}},
        })
    });
}

/// The schema of the answers of `problem.rs`.
fn problem() -> Value {
    json!({
        "description": "What is wrong with a request (RFC 9457).",
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "offset": {"type": "integer", "description": "Of a body that is not well-formed: the byte where it goes wrong."},
            "errors": {"type": "array", "items": {"$ref": format!("{COMPONENTS}Violation")}},
        },
        "required": ["title", "status"],
    })
}

fn violation() -> Value {
    json!({
        "description": "A rule that a value breaks.",
        "type": "object",
        "properties": {
            "in": {"enum": ["body", "query"]},
            "pointer": {"type": "string", "format": "json-pointer"},
            "rule": {"type": "string"},
            "message": {"type": "string"},
            "parameters": {"type": "object"},
        },
        "required": ["in", "pointer", "rule", "message"],
    })
}

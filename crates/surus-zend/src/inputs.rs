//! What routes take as input: bodies and query strings, read and validated before PHP is entered.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
};

use bytes::Bytes;
use http::{header, HeaderValue, Response, StatusCode};
use surus_schema::{problem, Accepts, Input, Messages, Rejected, Schema};

use crate::{
    exchange::{BodyError, Exchange},
    ResponseBody,
};

/// Where an argument comes from, as C says it (`SURUS_FROM_*`); the first two can be combined.
const FROM_JSON: i32 = 1;
const FROM_FORM: i32 = 2;
const FROM_QUERY: i32 = 4;

/// Input of one argument of one route.
#[derive(Debug)]
struct Declared {
    route: i64,
    from: Source,
    schema: Schema,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Body(Accepts),
    Query,
}

impl Source {
    fn place(self) -> problem::Place {
        match self {
            Source::Body(_) => "body",
            Source::Query => "query",
        }
    }
}

/// Of an exchange: what an application declares while it boots, or what a request has brought.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    declared: RefCell<(Vec<Declared>, Messages)>,
    /// Set once, before PHP sees it.
    read: OnceCell<Vec<Input>>,
    /// For violations that PHP finds.
    of: Option<Rc<RouteInputs>>,
    /// At boot: the application is to hand over its OpenAPI document.
    wants_openapi: Cell<bool>,
    openapi: OnceCell<String>,
}

/// Of an application: the inputs of each route.
#[derive(Debug)]
pub(crate) struct RouteInputs {
    /// By route; most have none.
    routes: Vec<Vec<(Source, Schema)>>,
    messages: Messages,
}

impl RouteInputs {
    /// What a boot has declared.
    pub(crate) fn take(boot: &Exchange) -> Option<Rc<RouteInputs>> {
        let (declared, messages) = boot.inputs.get()?.declared.take();
        let mut routes = Vec::new();
        for Declared {
            route,
            from,
            schema,
        } in declared
        {
            let route = usize::try_from(route).unwrap_or(0);
            if routes.len() <= route {
                routes.resize_with(route + 1, Vec::new);
            }
            routes[route].push((from, schema));
        }
        Some(Rc::new(RouteInputs { routes, messages }))
    }

    fn of_route(&self, exchange: &Exchange) -> Option<&Vec<(Source, Schema)>> {
        let route = usize::try_from(exchange.route.get()).unwrap_or(0);
        self.routes.get(route)
    }

    /// Whether the exchange's route takes any.
    pub(crate) fn has(&self, exchange: &Exchange) -> bool {
        let route = usize::try_from(exchange.route.get()).unwrap_or(0);
        self.routes.get(route).is_some_and(|all| !all.is_empty())
    }

    /// Reads and validates what the exchange's route takes. `Some` is the answer in PHP's place.
    pub(crate) async fn read(
        self: &Rc<Self>,
        exchange: &Exchange,
    ) -> Option<Response<ResponseBody>> {
        let wanted = self.of_route(exchange).filter(|all| !all.is_empty())?;
        let mut read = Vec::with_capacity(wanted.len());
        for (source, schema) in wanted {
            match read_one(exchange, *source, schema).await {
                Ok(input) => read.push(input),
                Err(Refused::Rejected(rejected)) => {
                    let accepted = match source {
                        Source::Body(accepts) => accepts.names(),
                        Source::Query => "",
                    };
                    let language = accept_language(exchange);
                    let (status, text) =
                        problem::answer(&rejected, source.place(), &self.messages, language);
                    return Some(answer(status, text, accepted));
                }
                Err(Refused::BrokenOff) => return Some(crate::answers::plain_answer(400)),
            }
        }
        let inputs = Inputs {
            read: read.into(),
            of: Some(self.clone()),
            ..Inputs::default()
        };
        let _ = exchange.inputs.set(Box::new(inputs));
        None
    }
}

enum Refused {
    Rejected(Rejected),
    BrokenOff,
}

async fn read_one(exchange: &Exchange, source: Source, schema: &Schema) -> Result<Input, Refused> {
    let limit = schema.limits().bytes;
    let Source::Body(accepts) = source else {
        let query = exchange.request.uri.query().unwrap_or("");
        return schema.read_query(query).map_err(Refused::Rejected);
    };
    let content_type = exchange
        .request
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = accepts.media(content_type).ok_or({
        Refused::Rejected(Rejected::WrongType {
            accepted: accepts.names(),
        })
    })?;
    let body = exchange
        .whole_body(limit)
        .await
        .map_err(|error| match error {
            BodyError::TooLarge => Refused::Rejected(Rejected::TooLarge { limit }),
            BodyError::BrokenOff => Refused::BrokenOff,
        })?;
    schema.read(&media, body).map_err(Refused::Rejected)
}

fn accept_language(exchange: &Exchange) -> Option<&str> {
    let value = exchange.request.headers.get(header::ACCEPT_LANGUAGE)?;
    value.to_str().ok()
}

fn answer(status: u16, text: String, accepted: &'static str) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::full(Bytes::from(text)));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if status == 415 {
        headers.insert("accept-post", HeaderValue::from_static(accepted));
    }
    answer
}

impl Exchange {
    /// At boot: input of a route's argument. The number of it among the route's inputs.
    pub(crate) fn add_input(
        &self,
        route: i64,
        from: i32,
        description: &str,
    ) -> Result<i32, String> {
        let form = from & FROM_FORM != 0;
        let source = match from {
            FROM_QUERY => Source::Query,
            _ if from & FROM_QUERY != 0 => {
                return Err("an argument is either of the query or of the body".to_owned())
            }
            _ => Source::Body(Accepts {
                json: from & FROM_JSON != 0,
                form,
            }),
        };
        let schema = Schema::compile(description).map_err(|error| error.to_string())?;
        let mut declared = self.inputs.get_or_init(Box::default).declared.borrow_mut();
        let before = declared.0.iter().filter(|each| each.route == route);
        let slot = i32::try_from(before.count()).unwrap_or(0);
        declared.0.push(Declared {
            route,
            from: source,
            schema,
        });
        Ok(slot)
    }

    /// At boot: messages in other languages.
    pub(crate) fn add_messages(&self, json: &str) -> Result<(), String> {
        let mut declared = self.inputs.get_or_init(Box::default).declared.borrow_mut();
        declared.1.add(json)
    }

    /// Before boot: the application is to hand over its OpenAPI document.
    pub(crate) fn want_openapi(&self) {
        self.inputs
            .get_or_init(Box::default)
            .wants_openapi
            .set(true);
    }

    pub(crate) fn wants_openapi(&self) -> bool {
        let inputs = self.inputs.get();
        inputs.is_some_and(|inputs| inputs.wants_openapi.get())
    }

    pub(crate) fn set_openapi(&self, document: String) {
        if let Some(inputs) = self.inputs.get() {
            let _ = inputs.openapi.set(document);
        }
    }

    pub(crate) fn openapi(&self) -> Option<String> {
        self.inputs.get()?.openapi.get().cloned()
    }

    /// Validated input of the request.
    pub(crate) fn input(&self, slot: u32) -> Option<&Input> {
        self.inputs.get()?.read.get()?.get(slot as usize)
    }

    /// Answers input that breaks rules of the second phase.
    pub(crate) fn answer_invalid(&self, slot: u32, violations: &str) {
        let Some(inputs) = self.inputs.get().and_then(|inputs| inputs.of.as_ref()) else {
            return;
        };
        let asked = inputs.of_route(self).and_then(|all| all.get(slot as usize));
        let place = asked.map_or("body", |(source, _)| source.place());
        let language = accept_language(self);
        let (status, text) = Schema::second_phase(violations, place, &inputs.messages, language)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "rules of the application");
                (
                    500,
                    r#"{"title":"Internal Server Error","status":500}"#.to_owned(),
                )
            });
        self.add_header(b"content-type", b"application/problem+json");
        self.set_status(i32::from(status));
        self.write(text.as_bytes());
    }
}

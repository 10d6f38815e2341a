//! Inputs of routes: bodies and query strings, read and validated before PHP is entered.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
};

use bytes::Bytes;
use http::{header, HeaderValue, Response, StatusCode};
use surus_schema::{problem, Accepts, Input, Messages, Rejected, Schema};

use crate::{
    body::response_body::ResponseBody,
    exchange::{BodyError, Exchange},
};

/// Where an argument comes from, with the values of C (`SURUS_FROM_*`); the first two can be combined.
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
    fn place(self) -> problem::InputSource {
        match self {
            Source::Body(_) => "body",
            Source::Query => "query",
        }
    }
}

/// The inputs that an application declares while it boots.
#[derive(Debug, Default)]
struct Booting {
    inputs: Vec<Declared>,
    messages: Messages,
    /// Routes whose refusals PHP answers.
    guarded: Vec<i64>,
}

/// Why input is refused: the answer in the handler's place.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// A problem document.
    pub(crate) text: String,
    /// Media types that the route accepts; empty unless the refusal is 415.
    pub(crate) accepted: &'static str,
}

/// The inputs of an exchange: declared by an application while it boots, or sent with a request.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    declared: RefCell<Booting>,
    /// Set once, before PHP is entered.
    read: OnceCell<Vec<Input>>,
    /// Violations of rules that are written in PHP.
    broken: RefCell<Vec<(Rejected, problem::InputSource)>>,
    /// Set instead of `read` on a guarded route, or made from `broken` on demand.
    refused: OnceCell<Refusal>,
    /// The inputs of the application, to answer violations that PHP finds.
    of: Option<Rc<RouteInputs>>,
    /// At boot: the application must pass its OpenAPI document.
    wants_openapi: Cell<bool>,
    openapi: OnceCell<String>,
}

/// Inputs of one route.
#[derive(Debug, Default)]
struct OfRoute {
    inputs: Vec<(Source, Schema)>,
    /// The handler has middleware, or the application answers such errors itself: refusals go through PHP.
    guarded: bool,
}

/// The inputs of each route of an application.
#[derive(Debug)]
pub(crate) struct RouteInputs {
    /// Inputs by index of the route; most have none.
    routes: Vec<OfRoute>,
    messages: Messages,
}

impl RouteInputs {
    /// Takes the inputs that a boot has declared.
    pub(crate) fn take(boot: &Exchange) -> Option<Rc<RouteInputs>> {
        let declared = boot.inputs.get()?.declared.take();
        let mut routes = Vec::new();
        for Declared {
            route,
            from,
            schema,
        } in declared.inputs
        {
            let route = usize::try_from(route).unwrap_or(0);
            if routes.len() <= route {
                routes.resize_with(route + 1, OfRoute::default);
            }
            routes[route].inputs.push((from, schema));
        }
        for route in declared.guarded {
            let route = usize::try_from(route).ok();
            if let Some(route) = route.and_then(|route| routes.get_mut(route)) {
                route.guarded = true;
            }
        }
        Some(Rc::new(RouteInputs {
            routes,
            messages: declared.messages,
        }))
    }

    /// The inputs of the exchange's route, if it has any.
    fn of_route(&self, exchange: &Exchange) -> Option<&OfRoute> {
        let route = usize::try_from(exchange.route.get()).unwrap_or(0);
        self.routes
            .get(route)
            .filter(|route| !route.inputs.is_empty())
    }

    /// Whether the exchange's route has inputs.
    pub(crate) fn has(&self, exchange: &Exchange) -> bool {
        self.of_route(exchange).is_some()
    }

    /// Reads and validates the inputs of the exchange's route. `Some` is the answer in PHP's place; on a guarded route
    /// PHP is entered all the same, and finds the refusal in place of the input.
    pub(crate) async fn read(
        self: &Rc<Self>,
        exchange: &Exchange,
    ) -> Option<Response<ResponseBody>> {
        let wanted = self.of_route(exchange)?;
        let mut inputs = Inputs {
            of: Some(self.clone()),
            ..Inputs::default()
        };
        match self.read_all(exchange, &wanted.inputs).await {
            Ok(read) => inputs.read = read.into(),
            Err(Refused::With(refusal)) if wanted.guarded => inputs.refused = refusal.into(),
            Err(Refused::With(refusal)) => return Some(answer(refusal)),
            Err(Refused::BrokenOff) => return Some(crate::exchange::answers::plain_answer(400)),
        }
        let _ = exchange.inputs.set(Box::new(inputs));
        None
    }

    async fn read_all(
        &self,
        exchange: &Exchange,
        wanted: &[(Source, Schema)],
    ) -> Result<Vec<Input>, Refused> {
        let mut read = Vec::with_capacity(wanted.len());
        let mut rejected = Vec::new();
        for (source, schema) in wanted {
            match read_one(exchange, *source, schema).await {
                Ok(input) => read.push(input),
                Err(Unread::BrokenOff) => return Err(Refused::BrokenOff),
                Err(Unread::Rejected(why)) => rejected.push((why, source.place())),
            }
        }
        if rejected.is_empty() {
            return Ok(read);
        }
        Err(Refused::With(self.refusal(exchange, &rejected)))
    }

    fn refusal(
        &self,
        exchange: &Exchange,
        rejected: &[(Rejected, problem::InputSource)],
    ) -> Refusal {
        let language = accept_language(exchange);
        let (status, text) = problem::answer(rejected, &self.messages, language.as_deref());
        let accepted = rejected.iter().find_map(|(why, _)| match why {
            Rejected::WrongType { accepted } if status == 415 => Some(*accepted),
            _ => None,
        });
        Refusal {
            status,
            text,
            accepted: accepted.unwrap_or(""),
        }
    }
}

enum Refused {
    With(Refusal),
    BrokenOff,
}

enum Unread {
    Rejected(Rejected),
    BrokenOff,
}

async fn read_one(exchange: &Exchange, source: Source, schema: &Schema) -> Result<Input, Unread> {
    let limit = schema.limits().bytes;
    let Source::Body(accepts) = source else {
        let query = exchange.request.uri.query().unwrap_or("");
        return schema.read_query(query).map_err(Unread::Rejected);
    };
    let media = {
        let headers = exchange.headers.get();
        let content_type = headers.get(header::CONTENT_TYPE);
        accepts
            .media(content_type.and_then(|value| value.to_str().ok()))
            .ok_or({
                Unread::Rejected(Rejected::WrongType {
                    accepted: accepts.names(),
                })
            })?
    };
    let body = exchange
        .whole_body(limit)
        .await
        .map_err(|error| match error {
            BodyError::TooLarge => Unread::Rejected(Rejected::TooLarge { limit }),
            BodyError::BrokenOff => Unread::BrokenOff,
        })?;
    schema.read(&media, body).map_err(Unread::Rejected)
}

fn accept_language(exchange: &Exchange) -> Option<String> {
    let headers = exchange.headers.get();
    let value = headers.get(header::ACCEPT_LANGUAGE)?;
    value.to_str().ok().map(str::to_owned)
}

fn answer(refusal: Refusal) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::full(Bytes::from(refusal.text)));
    *answer.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if !refusal.accepted.is_empty() {
        headers.insert("accept-post", HeaderValue::from_static(refusal.accepted));
    }
    answer
}

impl Exchange {
    /// At boot: adds the input of a route's argument. Returns its index among the route's inputs.
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
        let before = declared.inputs.iter().filter(|each| each.route == route);
        let slot = i32::try_from(before.count()).unwrap_or(0);
        declared.inputs.push(Declared {
            route,
            from: source,
            schema,
        });
        Ok(slot)
    }

    /// At boot: adds messages in other languages.
    pub(crate) fn add_messages(&self, json: &str) -> Result<(), String> {
        let mut declared = self.inputs.get_or_init(Box::default).declared.borrow_mut();
        declared.messages.add(json)
    }

    /// At boot: refusals on this route are answered by PHP.
    pub(crate) fn guard_route(&self, route: i64) {
        let inputs = self.inputs.get_or_init(Box::default);
        inputs.declared.borrow_mut().guarded.push(route);
    }

    /// Before boot: the application must pass its OpenAPI document.
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

    /// Why the request's input is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        let inputs = self.inputs.get()?;
        if inputs.refused.get().is_none() {
            let broken = inputs.broken.take();
            if let Some(routes) = inputs.of.as_ref().filter(|_| !broken.is_empty()) {
                let _ = inputs.refused.set(routes.refusal(self, &broken));
            }
        }
        inputs.refused.get()
    }

    /// Refuses input that violates rules of the second phase, in addition to earlier refusals.
    pub(crate) fn refuse_input(&self, slot: u32, violations: &str) {
        let Some(inputs) = self.inputs.get() else {
            return;
        };
        let routes = inputs.of.as_ref();
        let asked = routes
            .and_then(|routes| routes.of_route(self))
            .and_then(|route| route.inputs.get(slot as usize));
        let place = asked.map_or("body", |(source, _)| source.place());
        match Rejected::by_rules(violations) {
            Ok(rejected) => inputs.broken.borrow_mut().push((rejected, place)),
            Err(error) => {
                tracing::error!(%error, "rules of the application");
                let _ = inputs.refused.set(Refusal {
                    status: 500,
                    text: r#"{"title":"Internal Server Error","status":500}"#.to_owned(),
                    accepted: "",
                });
            }
        }
    }
}

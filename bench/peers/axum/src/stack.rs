//! CORS, an encrypted session, a signed token and a rate limit.

use std::sync::Arc;

use axum::{
    extract::{FromRef, State},
    http::{header, HeaderValue, StatusCode},
    routing::get,
    Json, Router,
};
use axum_extra::{
    extract::cookie::{Cookie, Key, PrivateCookieJar},
    headers::{authorization::Bearer, Authorization},
    TypedHeader,
};
use jsonwebtoken::{decode, Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Serialize};
use tower_governor::{governor::GovernorConfigBuilder, GovernorLayer};
use tower_http::cors::CorsLayer;

#[derive(Clone)]
struct Keys {
    session: Key,
    token: Arc<(DecodingKey, Validation)>,
}

impl FromRef<Keys> for Key {
    fn from_ref(keys: &Keys) -> Key {
        keys.session.clone()
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

#[derive(Serialize)]
struct Account {
    session: String,
    token: String,
}

async fn login(jar: PrivateCookieJar) -> (PrivateCookieJar, Json<serde_json::Value>) {
    let jar = jar.add(Cookie::build(("session", "ann")).path("/").http_only(true));
    (jar, Json(serde_json::json!({"in": true})))
}

async fn account(
    State(keys): State<Keys>,
    jar: PrivateCookieJar,
    TypedHeader(bearer): TypedHeader<Authorization<Bearer>>,
) -> Result<Json<Account>, StatusCode> {
    let (key, validation) = &*keys.token;
    let claims = decode::<Claims>(bearer.token(), key, validation)
        .map_err(|_| StatusCode::UNAUTHORIZED)?
        .claims;
    let session = jar.get("session").ok_or(StatusCode::UNAUTHORIZED)?;
    Ok(Json(Account {
        session: session.value().to_owned(),
        token: claims.sub,
    }))
}

pub fn routes() -> Router {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_issuer(&["https://issuer.example"]);
    validation.set_audience(&["api"]);
    let keys = Keys {
        session: Key::from(&[b's'; 64]),
        token: Arc::new((DecodingKey::from_secret(&[b'k'; 32]), validation)),
    };
    let limit = GovernorConfigBuilder::default()
        .per_nanosecond(1)
        .burst_size(1_000_000_000)
        .use_headers()
        .finish()
        .expect("a limit");
    let cors = CorsLayer::new()
        .allow_origin(HeaderValue::from_static("https://app.example"))
        .allow_credentials(true)
        .expose_headers([header::DATE]);
    Router::new()
        .route("/account", get(account))
        .layer(GovernorLayer::new(limit))
        .layer(cors)
        .route("/login", get(login))
        .with_state(keys)
}

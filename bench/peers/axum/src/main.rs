//! As in ../../surus/app.php.

mod orders;
mod stack;

use std::net::SocketAddr;

use axum::{
    extract::Path,
    routing::{get, post},
    Json, Router,
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let mut router = Router::new()
        .route("/orders", post(orders::orders))
        .merge(stack::routes());
    for i in 0..number("ROUTES").unwrap_or(0) {
        let answer =
            move |Path(id): Path<String>| async move { Json(json!({"route": i, "id": id})) };
        router = router.route(&format!("/group{}/item{i}/{{id}}", i % 100), get(answer));
    }
    let port = number("PORT").unwrap_or(0);
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(
        listener,
        router.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}

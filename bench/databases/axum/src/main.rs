//! The loads with axum and tokio-postgres, on one thread: each connection pipelines what requests ask, in turn.

use std::{
    env,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Path, State},
    response::{Html, Json},
    routing::get,
    Router,
};
use futures_util::future::try_join_all;
use serde::Serialize;
use tokio_postgres::{connect, Client, Error, NoTls, Statement};

#[derive(Serialize)]
struct World {
    id: i32,
    randomnumber: i32,
}

struct Connection {
    client: Client,
    one: Statement,
    fortunes: Statement,
    update: Statement,
}

struct Pool {
    connections: Vec<Connection>,
    next: AtomicUsize,
}

impl Pool {
    fn connection(&self) -> &Connection {
        &self.connections[self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len()]
    }
}

impl Connection {
    async fn world(&self, id: i32) -> Result<World, Error> {
        let row = self.client.query_one(&self.one, &[&id]).await?;
        Ok(World {
            id: row.get(0),
            randomnumber: row.get(1),
        })
    }

    async fn worlds(&self, first: i32) -> Result<Vec<World>, Error> {
        try_join_all((first..first + 20).map(|id| self.world(id))).await
    }
}

async fn db(State(pool): State<Arc<Pool>>, Path(id): Path<i32>) -> Json<World> {
    Json(pool.connection().world(id).await.expect("a row"))
}

async fn queries(State(pool): State<Arc<Pool>>, Path(id): Path<i32>) -> Json<Vec<World>> {
    Json(pool.connection().worlds(id).await.expect("rows"))
}

async fn fortunes(State(pool): State<Arc<Pool>>) -> Html<String> {
    let connection = pool.connection();
    let rows = connection.client.query(&connection.fortunes, &[]).await.expect("rows");
    let mut rows: Vec<(i32, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    rows.push((0, "Additional fortune added at request time.".to_owned()));
    rows.sort_by(|a, b| a.1.cmp(&b.1));
    let mut html = String::with_capacity(2048);
    html += "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>";
    for (id, message) in rows {
        html += &format!("<tr><td>{id}</td><td>{}</td></tr>", v_htmlescape::escape(&message));
    }
    html += "</table></body></html>";
    Html(html)
}

async fn updates(State(pool): State<Arc<Pool>>, Path(id): Path<i32>) -> Json<Vec<World>> {
    let connection = pool.connection();
    let mut rows = connection.worlds(id).await.expect("rows");
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").subsec_nanos() | 1;
    for row in &mut rows {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        row.randomnumber = (seed % 10000) as i32 + 1;
    }
    let ids: Vec<i32> = rows.iter().map(|row| row.id).collect();
    let numbers: Vec<i32> = rows.iter().map(|row| row.randomnumber).collect();
    connection.client.execute(&connection.update, &[&ids, &numbers]).await.expect("updated");
    Json(rows)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let database = env::var("DATABASE").expect("DATABASE");
    let count: usize = env::var("CONNECTIONS").expect("CONNECTIONS").parse().expect("a number");
    let mut connections = Vec::new();
    for _ in 0..count {
        let (client, connection) = connect(&database, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        let prepare = |sql: &'static str| client.prepare(sql);
        let one = prepare("SELECT id, randomnumber FROM world WHERE id = $1").await.expect("good");
        let fortunes = prepare("SELECT id, message FROM fortune").await.expect("good");
        let update = prepare("UPDATE world SET randomnumber = new.number FROM unnest($1::int[], $2::int[]) AS new (id, number) WHERE world.id = new.id")
            .await
            .expect("good");
        connections.push(Connection { client, one, fortunes, update });
    }
    let pool = Arc::new(Pool { connections, next: AtomicUsize::new(0) });
    let app = Router::new()
        .route("/db/{id}", get(db))
        .route("/queries/{id}", get(queries))
        .route("/fortunes", get(fortunes))
        .route("/updates/{id}", get(updates))
        .with_state(pool);
    let address = format!("127.0.0.1:{}", env::var("PORT").expect("PORT"));
    let listener = tokio::net::TcpListener::bind(address).await.expect("a port");
    println!("ready");
    axum::serve(listener, app).await.expect("serve");
}

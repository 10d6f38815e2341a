//! `Surus\Postgres`: `csrc/postgres`. Clients belong to the process, transactions to the request that has begun them.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    ffi::{c_int, c_void},
    io,
    net::{SocketAddr, ToSocketAddrs},
    pin::Pin,
    rc::{Rc, Weak},
    time::Duration,
};

use surus_postgres::{Bound, Client, Config, Failure, Kind, Parameter, Rows, Ticket};

use super::{exchange, pools::Pool};
use crate::{
    blocking::{
        can_park,
        helper::{block_signals, EnvironmentRead},
        park_on, Cancelled,
    },
    exchange::Exchange,
    ffi::{self, Str},
};

/// So long may a statement wait for a connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// More connection strings than an application has: one that makes them up would have as many connections.
const MOST_CLIENTS: usize = 200;
/// More connections than one worker can use.
const MOST_CONNECTIONS: i64 = 1000;

/// The native clients, for `surus status`.
pub(super) fn pools() -> Vec<Pool> {
    CLIENTS.with_borrow(|clients| {
        let described = clients.all.iter().map(|client| {
            let figures = client.figures();
            Pool {
                kind: "Surus\\Postgres".to_owned(),
                address: figures.address,
                max: figures.most as u64,
                idle: (figures.open - figures.busy) as u64,
                in_use: figures.busy as u64,
                waiting: figures.waiting as u64,
                resets: 0,
                dropped: figures.lost,
                closed: figures.unused,
            }
        });
        described.collect()
    })
}

#[derive(Default)]
struct Clients {
    numbers: HashMap<(String, i64), usize>,
    all: Vec<Rc<Client>>,
}

thread_local! {
    static CLIENTS: RefCell<Clients> = RefCell::default();
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What C gets; none: the running code must end.
type Answer = Option<Result<Rows, Failure>>;

pub(super) fn boxed(answer: Answer) -> *mut c_void {
    Box::into_raw(Box::new(answer)).cast()
}

fn usage(message: &str) -> Answer {
    Some(Err(Failure::usage(message)))
}

/// On a helper thread, which gets no signals.
fn resolve(
    host: String,
    port: u16,
) -> Pin<Box<dyn std::future::Future<Output = io::Result<Vec<SocketAddr>>>>> {
    let asking = tokio::task::spawn_blocking(move || {
        block_signals();
        let _reading = EnvironmentRead::begin();
        (host.as_str(), port)
            .to_socket_addrs()
            .map(Iterator::collect)
    });
    Box::pin(async move { asking.await.map_err(io::Error::other)? })
}

fn find(text: &str, connections: i64) -> Result<usize, String> {
    if !(1..=MOST_CONNECTIONS).contains(&connections) {
        return Err(format!(
            "connections must be from 1 to {MOST_CONNECTIONS}, {connections} given"
        ));
    }
    CLIENTS.with_borrow_mut(|clients| {
        let key = (text.to_owned(), connections);
        if let Some(&number) = clients.numbers.get(&key) {
            return Ok(number);
        }
        let config = Config::parse(text)?;
        if clients.all.len() >= MOST_CLIENTS {
            return Err(format!(
                "This process has had {MOST_CLIENTS} different connection strings: use the same for all requests"
            ));
        }
        let most = usize::try_from(connections).unwrap_or(1);
        clients
            .all
            .push(Client::new(config, most, Rc::new(resolve)));
        clients.numbers.insert(key, clients.all.len());
        Ok(clients.all.len())
    })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_client(text: Str, connections: i64, error: *mut Str) -> u64 {
    // SAFETY: the text lives for this call.
    let text = unsafe { String::from_utf8_lossy(text.bytes()) };
    match find(&text, connections) {
        Ok(number) => number as u64,
        Err(why) => LAST_ERROR.with_borrow_mut(|last| {
            *last = why;
            // SAFETY: writable; the text stays until the next call.
            unsafe { error.write(Str::new(last.as_bytes())) };
            0
        }),
    }
}

pub(super) fn client(number: u64) -> Option<Rc<Client>> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    CLIENTS.with_borrow(|clients| clients.all.get(index).cloned())
}

/// # Safety
/// `raw` is NULL or the running task's exchange.
pub(super) unsafe fn exchange_or_none<'a>(raw: *mut c_void) -> Option<&'a Exchange> {
    // SAFETY: the caller's promise.
    (!raw.is_null()).then(|| unsafe { exchange(raw) })
}

/// # Safety
/// The values and their texts can be read.
unsafe fn parameters(values: &ffi::PostgresValues) -> Vec<Parameter> {
    if values.count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let values = unsafe { std::slice::from_raw_parts(values.values, values.count) };
    let parameter = |value: &ffi::PostgresValue| {
        // SAFETY: as above; values without a text have an empty one.
        let text = || Box::from(unsafe { value.text.bytes() });
        match value.kind {
            ffi::POSTGRES_BOOL => Parameter::Bool(value.integer != 0),
            ffi::POSTGRES_INT => Parameter::Int(value.integer),
            ffi::POSTGRES_FLOAT => Parameter::Float(value.number),
            ffi::POSTGRES_TEXT => Parameter::Text(text()),
            ffi::POSTGRES_ARRAY => Parameter::Array(text()),
            _ => Parameter::Null,
        }
    };
    values.iter().map(parameter).collect()
}

pub(super) const NOT_HERE: &str = "Nothing can wait for the database here: PHP compiles a file or collects cycles, or this is a script without tasks";
const NOT_UTF8: &str = "The statement is no UTF-8";
const ANOTHERS: &str = "This client is another process's";
pub(super) const OVER: &str = "The transaction has ended";

fn wait(ticket: Result<Ticket, Failure>) -> Answer {
    match ticket {
        Ok(ticket) => park_on(ticket.answer(PATIENCE)).ok(),
        Err(failure) => Some(Err(failure)),
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_query(
    raw: *mut c_void,
    number: u64,
    transaction_number: u64,
    sql: Str,
    values: ffi::PostgresValues,
    limit: usize,
) -> *mut c_void {
    if !can_park() {
        return boxed(usage(NOT_HERE));
    }
    // SAFETY: C passes the running task's exchange, and text and values that live for this call.
    let (exchange, sql, parameters) = unsafe {
        (
            exchange_or_none(raw),
            std::str::from_utf8(sql.bytes()),
            parameters(&values),
        )
    };
    let Ok(sql) = sql else {
        return boxed(usage(NOT_UTF8));
    };
    if transaction_number != 0 {
        let found = exchange.and_then(|exchange| exchange.transactions.find(transaction_number));
        return boxed(match found {
            Some(bound) => wait(bound.submit(sql, parameters, limit)),
            None => usage(OVER),
        });
    }
    boxed(match client(number) {
        Some(client) => wait(client.submit(sql, parameters, limit)),
        None => usage(ANOTHERS),
    })
}

/// A statement for several lists of parameters.
struct Batch {
    client: Option<Rc<Client>>,
    /// Not the batch's: the code that makes its lists may be given up, and what it has on its stack with it.
    transaction: Option<Weak<Bound>>,
    is_in_transaction: bool,
    /// None: no UTF-8.
    sql: Option<String>,
    limit: usize,
    lists: Vec<Vec<Parameter>>,
    /// Once it was sent.
    answers: Option<VecDeque<Ticket>>,
}

impl Batch {
    fn send(&mut self) -> Result<VecDeque<Ticket>, Failure> {
        let lists = std::mem::take(&mut self.lists);
        let Some(sql) = &self.sql else {
            return Err(Failure::usage(NOT_UTF8));
        };
        if !can_park() {
            return Err(Failure::usage(NOT_HERE));
        }
        if self.is_in_transaction {
            let bound = self.transaction.as_ref().and_then(Weak::upgrade);
            let bound = bound.ok_or_else(|| Failure::usage(OVER))?;
            let each = lists.into_iter();
            return each
                .map(|list| bound.submit(sql, list, self.limit))
                .collect();
        }
        let client = self.client.as_ref();
        let client = client.ok_or_else(|| Failure::usage(ANOTHERS))?;
        Ok(client.submit_each(sql, lists, self.limit)?.into())
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_batch(
    raw: *mut c_void,
    number: u64,
    transaction_number: u64,
    sql: Str,
    limit: usize,
) -> *mut c_void {
    // SAFETY: C passes the running task's exchange, and text that lives for this call.
    let (exchange, sql) = unsafe { (exchange_or_none(raw), std::str::from_utf8(sql.bytes())) };
    let batch = Batch {
        client: client(number),
        transaction: exchange
            .and_then(|exchange| exchange.transactions.find(transaction_number))
            .map(|bound| Rc::downgrade(&bound)),
        is_in_transaction: transaction_number != 0,
        sql: sql.ok().map(str::to_owned),
        limit,
        lists: Vec::new(),
        answers: None,
    };
    Box::into_raw(Box::new(batch)).cast()
}

/// # Safety
/// `raw` comes from the function above, and was not freed.
unsafe fn batch<'a>(raw: *mut c_void) -> &'a mut Batch {
    // SAFETY: the caller's promise; C uses it in one place at a time.
    unsafe { &mut *raw.cast::<Batch>() }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_batch_add(raw: *mut c_void, values: ffi::PostgresValues) {
    // SAFETY: C passes a batch, and values that live for this call.
    unsafe { batch(raw).lists.push(parameters(&values)) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_batch_next(raw: *mut c_void) -> *mut c_void {
    // SAFETY: C passes a batch, which the running code keeps while it is parked.
    let batch = unsafe { batch(raw) };
    if batch.answers.is_none() {
        match batch.send() {
            Ok(tickets) => batch.answers = Some(tickets),
            Err(failure) => return boxed(Some(Err(failure))),
        }
    }
    let Some(ticket) = batch.answers.as_mut().and_then(VecDeque::pop_front) else {
        return std::ptr::null_mut();
    };
    boxed(match ticket.try_answer() {
        Some(answer) => Some(answer),
        None => wait(Ok(ticket)),
    })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_batch_free(raw: *mut c_void) {
    // SAFETY: C passes a batch, once.
    drop(unsafe { Box::from_raw(raw.cast::<Batch>()) });
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_begin(
    raw: *mut c_void,
    number: u64,
    sql: Str,
    transaction: *mut u64,
) -> *mut c_void {
    // SAFETY: C passes the running task's exchange, text that lives for this call, and a place for the answer.
    let (exchange, sql) = unsafe {
        transaction.write(0);
        (exchange_or_none(raw), String::from_utf8_lossy(sql.bytes()))
    };
    let (Some(exchange), Some(client), true) = (exchange, client(number), can_park()) else {
        return boxed(usage(NOT_HERE));
    };
    let beginning = async move {
        let bound = client.bind(PATIENCE).await?;
        let rows = bound.control(&sql, Vec::new(), 0)?.answer(PATIENCE).await?;
        Ok((bound, rows))
    };
    boxed(match park_on(beginning) {
        Err(Cancelled) => None,
        Ok(Err(failure)) => Some(Err(failure)),
        Ok(Ok((bound, rows))) => {
            let own = exchange.transactions.add(Rc::new(bound));
            // SAFETY: as above.
            unsafe { transaction.write(own) };
            Some(Ok(rows))
        }
    })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_end(raw: *mut c_void, number: u64, sql: Str) -> *mut c_void {
    // SAFETY: C passes the running task's exchange, and text that lives for this call.
    let (exchange, sql) = unsafe { (exchange_or_none(raw), String::from_utf8_lossy(sql.bytes())) };
    let Some(bound) = exchange.and_then(|exchange| exchange.transactions.take(number)) else {
        return boxed(usage(OVER));
    };
    let answer = wait(bound.control(&sql, Vec::new(), 0));
    // Where the code must end, whether the transaction did is not known: then the connection is dropped with `bound`.
    if answer.is_some() {
        bound.release();
    }
    boxed(answer)
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_cut(raw: *mut c_void, number: u64) {
    // SAFETY: C passes the running task's exchange.
    if let Some(exchange) = unsafe { exchange_or_none(raw) } {
        exchange.transactions.take(number);
    }
}

/// # Safety
/// `answer` comes from a function above, and was not freed.
unsafe fn answer<'a>(answer: *mut c_void) -> &'a Answer {
    // SAFETY: the caller's promise.
    unsafe { &*answer.cast::<Answer>() }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_rows(
    raw: *mut c_void,
    rows: *mut ffi::PostgresRows,
    failure: *mut ffi::PostgresFailure,
) -> c_int {
    // SAFETY: C passes an answer, and places for what it says, which is the answer's.
    unsafe {
        match answer(raw) {
            None => ffi::POSTGRES_CUT,
            Some(Ok(found)) => {
                rows.write(ffi::PostgresRows {
                    data: Str::new(&found.data),
                    count: found.count,
                    columns: found.statement.columns.len(),
                    affected: found.affected,
                    rolled_back: found.rolled_back,
                });
                ffi::POSTGRES_ROWS
            }
            Some(Err(why)) => {
                failure.write(describe(why));
                ffi::POSTGRES_FAILED
            }
        }
    }
}

fn describe(failure: &Failure) -> ffi::PostgresFailure {
    let text = |text: &String| Str::new(text.as_bytes());
    ffi::PostgresFailure {
        kind: match failure.kind {
            Kind::Server => 0,
            Kind::Connection => 1,
            Kind::Usage => 2,
            Kind::Busy => 3,
            Kind::TooLarge => 4,
        },
        position: i64::from(failure.position),
        message: text(&failure.message),
        state: text(&failure.state),
        detail: text(&failure.detail),
        hint: text(&failure.hint),
        constraint: text(&failure.constraint),
        table: text(&failure.table),
        column: text(&failure.column),
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_column(
    raw: *mut c_void,
    index: usize,
    column: *mut ffi::PostgresColumn,
) {
    // SAFETY: C passes an answer with rows, an index below their number of columns, and a place for the column.
    unsafe {
        if let Some(Ok(rows)) = answer(raw) {
            let found = &rows.statement.columns[index];
            column.write(ffi::PostgresColumn {
                name: Str::new(found.name.as_bytes()),
                kind: found.kind,
                binary: found.binary,
            });
        }
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_free(raw: *mut c_void) {
    // SAFETY: C passes an answer, once.
    drop(unsafe { Box::from_raw(raw.cast::<Answer>()) });
}

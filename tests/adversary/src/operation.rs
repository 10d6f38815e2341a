//! The rows of the table: what a request does with an extension. `php/operations/EXTENSION.php` has the code of each.

/// Who answers, behind a proxy of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Pgsql,
    Mysql,
    Redis,
    Memcached,
    Ldap,
    /// Repeats a word of the URL, and answers SOAP.
    Http,
    /// nginx with TLS.
    Tls,
    /// Repeats lines.
    Lines,
}

impl Backend {
    pub(crate) const ALL: [Backend; 8] = [
        Self::Pgsql,
        Self::Mysql,
        Self::Redis,
        Self::Memcached,
        Self::Ldap,
        Self::Http,
        Self::Tls,
        Self::Lines,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pgsql => "PGSQL",
            Self::Mysql => "MYSQL",
            Self::Redis => "REDIS",
            Self::Memcached => "MEMCACHED",
            Self::Ldap => "LDAP",
            Self::Http => "HTTP",
            Self::Tls => "TLS",
            Self::Lines => "LINES",
        }
    }
}

/// Who has the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    /// The request, or a pool that gives it to one at a time.
    Own,
    /// The next request gets it from PHP: it must be as a new one.
    Persistent,
    /// The application, which uses it in every request. In coroutine mode two requests may want it at a time: the second
    /// one is told so. In the other modes no request finds another one's statics.
    Shared,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Extension and operation.
    pub(crate) name: &'static str,
    /// None where no server answers.
    pub(crate) backend: Option<Backend>,
    pub(crate) handle: Handle,
    /// How many words a whole answer has.
    pub(crate) words: u64,
}

const fn row(name: &'static str, backend: Backend, handle: Handle, words: u64) -> Operation {
    Operation {
        name,
        backend: Some(backend),
        handle,
        words,
    }
}

const fn alone(name: &'static str, words: u64) -> Operation {
    Operation {
        name,
        backend: None,
        handle: Handle::Own,
        words,
    }
}

use Backend::{Http, Ldap, Lines, Memcached, Mysql, Pgsql, Redis, Tls};
use Handle::{Own, Persistent, Shared};

pub(crate) const OPERATIONS: &[Operation] = &[
    row("pdo_pgsql.emulated", Pgsql, Own, 3),
    row("pdo_pgsql.prepared", Pgsql, Own, 3),
    row("pdo_pgsql.persistent", Pgsql, Persistent, 3),
    row("pdo_pgsql.persistent_prepared", Pgsql, Persistent, 3),
    row("pdo_pgsql.transaction", Pgsql, Persistent, 3),
    row("pdo_pgsql.state", Pgsql, Persistent, 4),
    row("pdo_pgsql.copy", Pgsql, Persistent, 2),
    row("pdo_pgsql.pooled", Pgsql, Own, 3),
    row("pdo_pgsql.shared", Pgsql, Shared, 3),
    row("pgsql.params", Pgsql, Own, 3),
    row("pgsql.persistent", Pgsql, Persistent, 3),
    row("pgsql.persistent_prepared", Pgsql, Persistent, 3),
    row("pgsql.notices", Pgsql, Persistent, 2),
    row("pgsql.async", Pgsql, Persistent, 2),
    row("pgsql.state", Pgsql, Persistent, 3),
    row("pgsql.shared", Pgsql, Shared, 3),
    row("pdo_mysql.emulated", Mysql, Own, 3),
    row("pdo_mysql.prepared", Mysql, Own, 3),
    row("pdo_mysql.persistent", Mysql, Persistent, 3),
    row("pdo_mysql.persistent_prepared", Mysql, Persistent, 3),
    row("pdo_mysql.unbuffered", Mysql, Persistent, 3),
    row("pdo_mysql.state", Mysql, Persistent, 4),
    row("pdo_mysql.shared", Mysql, Shared, 3),
    row("mysqli.plain", Mysql, Own, 3),
    row("mysqli.prepared", Mysql, Own, 3),
    row("mysqli.persistent", Mysql, Persistent, 3),
    row("mysqli.persistent_prepared", Mysql, Persistent, 3),
    row("mysqli.async", Mysql, Persistent, 2),
    row("mysqli.multi", Mysql, Persistent, 2),
    row("mysqli.state", Mysql, Persistent, 3),
    row("mysqli.shared", Mysql, Shared, 3),
    row("redis.plain", Redis, Own, 4),
    row("redis.persistent", Redis, Persistent, 4),
    row("redis.values", Redis, Persistent, 2),
    row("redis.blocking", Redis, Persistent, 2),
    row("redis.pipeline", Redis, Persistent, 4),
    row("redis.multi", Redis, Persistent, 2),
    row("redis.database", Redis, Persistent, 3),
    row("redis.shared", Redis, Shared, 3),
    row("memcached.plain", Memcached, Own, 3),
    row("memcached.persistent", Memcached, Persistent, 3),
    row("memcached.many", Memcached, Persistent, 3),
    row("memcached.shared", Memcached, Shared, 3),
    row("ldap.search", Ldap, Own, 2),
    row("ldap.shared", Ldap, Shared, 2),
    row("http.curl", Http, Own, 3),
    row("http.curl_tls", Tls, Own, 3),
    row("http.curl_multi", Http, Own, 3),
    row("http.curl_shared", Http, Shared, 3),
    row("http.soap", Http, Own, 2),
    row("http.soap_shared", Http, Shared, 2),
    row("http.stream", Http, Own, 2),
    row("http.stream_tls", Tls, Own, 2),
    row("sockets.stream", Lines, Own, 3),
    row("sockets.persistent", Lines, Persistent, 3),
    row("sockets.persistent_client", Lines, Persistent, 3),
    row("sockets.shared", Lines, Shared, 3),
    row("sockets.select", Lines, Own, 2),
    row("sockets.socket", Lines, Own, 3),
    row("pool.transaction", Pgsql, Own, 3),
    row("pool.left_open", Pgsql, Own, 3),
    row("pool.nested", Redis, Own, 3),
    row("pool.kept", Pgsql, Shared, 3),
    row("pool.statement", Pgsql, Shared, 1),
    row("postgres.query", Pgsql, Persistent, 3),
    row("postgres.quick", Pgsql, Persistent, 4),
    row("postgres.each", Pgsql, Persistent, 8),
    row("postgres.all", Pgsql, Persistent, 4),
    row("postgres.transaction", Pgsql, Persistent, 3),
    row("upload.persistent", Pgsql, Persistent, 3),
    alone("system.session_files", 1),
    alone("system.session_lock", 1),
    row("system.session_redis", Redis, Own, 1),
    alone("system.flock", 1),
    alone("system.pipes", 2),
];

/// What the noisy neighbour does; no row of the table.
pub(crate) const NOISE: Operation = alone("system.noise", 1);

impl Operation {
    /// True if its connections outlive their requests.
    pub(crate) fn is_persistent(&self) -> bool {
        matches!(self.handle, Handle::Persistent)
    }

    /// True if its request has a form with a file.
    pub(crate) fn uploads(&self) -> bool {
        self.is("upload")
    }

    /// True if `name` is the operation's or its extension's.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.name.split('.').next() == Some(name)
    }
}

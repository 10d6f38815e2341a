//! From nothing to a connection that takes queries.

use std::{io, net::SocketAddr, time::Duration};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    authentication::{md5_hash, sasl},
    message::{backend::Message, frontend},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use crate::{
    client::Resolve,
    config::{Config, Place},
    failure::Failure,
    stream::Stream,
};

/// More than the server says before it is ready.
const LONGEST_GREETING: usize = 1 << 20;

/// With this the server can be asked to cancel what the connection runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Key {
    process: i32,
    secret: i32,
}

pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) key: Key,
    /// What was read beyond the greeting.
    pub(crate) input: BytesMut,
}

pub(crate) async fn connect(config: &Config, resolve: &Resolve) -> Result<Connection, Failure> {
    let server = config.server();
    match timeout(config.connect_timeout, greet(config, resolve)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(failure)) => {
            Err(failure.tell(|why| format!("No connection to PostgreSQL at {server}: {why}")))
        }
        Err(_) => Err(Failure::connection(format!(
            "No connection to PostgreSQL at {server} within {} s",
            config.connect_timeout.as_secs()
        ))),
    }
}

async fn open(config: &Config, resolve: &Resolve) -> io::Result<Stream> {
    let (host, port) = match &config.place {
        Place::Unix(path) => return Ok(Stream::Unix(UnixStream::connect(path).await?)),
        Place::Tcp(host, port) => (host, *port),
    };
    let addresses: Vec<SocketAddr> = match host.parse() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => resolve(host.clone(), port).await?,
    };
    let mut last = io::Error::other("its name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                // Else a server whose machine is gone would be waited for as long as a request may take, and in the
                // background for ever. The system would ask for eleven minutes more before it gives up.
                let alive = socket2::TcpKeepalive::new()
                    .with_time(Duration::from_secs(60))
                    .with_interval(Duration::from_secs(10))
                    .with_retries(3);
                socket2::SockRef::from(&stream).set_tcp_keepalive(&alive)?;
                return match &config.tls {
                    Some(tls) => tls.begin(stream, host).await,
                    None => Ok(Stream::Tcp(stream)),
                };
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Asks the server to cancel what another connection runs. Returns when the server has done so.
pub(crate) async fn cancel(config: &Config, resolve: &Resolve, key: Key) {
    let asking = async {
        let mut stream = open(config, resolve).await?;
        let mut bytes = BytesMut::new();
        frontend::cancel_request(key.process, key.secret, &mut bytes);
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        // It answers nothing, and closes.
        stream.read(&mut [0]).await
    };
    // Whether it has worked cannot be known; the connection is dropped in any case.
    let _ = timeout(config.connect_timeout, asking).await;
}

struct Greeting {
    stream: Stream,
    input: BytesMut,
}

impl Greeting {
    async fn next(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.input)? {
                return Ok(message);
            }
            if self.input.len() > LONGEST_GREETING {
                return Err(io::Error::other("what answers is no PostgreSQL"));
            }
            self.input.reserve(4096);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::other("the server has closed it"));
            }
        }
    }

    async fn say(&mut self, bytes: &BytesMut) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::connection(error.to_string())
    }
}

async fn greet(config: &Config, resolve: &Resolve) -> Result<Connection, Failure> {
    let mut greeting = Greeting {
        stream: open(config, resolve).await?,
        input: BytesMut::new(),
    };
    let mut parameters = vec![
        ("user", config.user.as_str()),
        ("database", &config.database),
        ("application_name", &config.application),
        ("client_encoding", "UTF8"),
    ];
    if let Some(options) = &config.options {
        parameters.push(("options", options));
    }
    let mut bytes = BytesMut::new();
    frontend::startup_message(parameters, &mut bytes)?;
    greeting.say(&bytes).await?;
    authenticate(config, &mut greeting).await?;
    let mut key = Key::default();
    loop {
        match greeting.next().await? {
            Message::BackendKeyData(body) => {
                key = Key {
                    process: body.process_id(),
                    secret: body.secret_key(),
                };
            }
            Message::ReadyForQuery(_) => break,
            Message::ErrorResponse(body) => return Err(Failure::from_server(&body).as_lost()),
            _ => {}
        }
    }
    Ok(Connection {
        stream: greeting.stream,
        key,
        input: greeting.input,
    })
}

async fn authenticate(config: &Config, greeting: &mut Greeting) -> Result<(), Failure> {
    let password = || {
        let missing =
            || Failure::connection("it asks for a password, and there is none: add password=…");
        config
            .password
            .as_deref()
            .map(str::as_bytes)
            .ok_or_else(missing)
    };
    loop {
        let mut bytes = BytesMut::new();
        match greeting.next().await? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?, &mut bytes)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(config.user.as_bytes(), password()?, body.salt());
                frontend::password_message(hash.as_bytes(), &mut bytes)?;
            }
            Message::AuthenticationSasl(body) => {
                let is_known = body
                    .mechanisms()
                    .any(|name| Ok(name == sasl::SCRAM_SHA_256))?;
                if !is_known {
                    return Err(Failure::connection(
                        "it wants a way of authentication that needs TLS",
                    ));
                }
                scram(password()?, greeting).await?;
                continue;
            }
            Message::ErrorResponse(body) => return Err(Failure::from_server(&body).as_lost()),
            Message::NoticeResponse(_) => continue,
            _ => return Err(Failure::connection(
                "it wants another authentication than scram-sha-256, md5, password, peer and trust",
            )),
        }
        greeting.say(&bytes).await?;
    }
}

async fn scram(password: &[u8], greeting: &mut Greeting) -> Result<(), Failure> {
    let mut scram = sasl::ScramSha256::new(password, sasl::ChannelBinding::unsupported());
    let mut bytes = BytesMut::new();
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), &mut bytes)?;
    greeting.say(&bytes).await?;
    match greeting.next().await? {
        Message::AuthenticationSaslContinue(body) => scram.update(body.data())?,
        Message::ErrorResponse(body) => return Err(Failure::from_server(&body).as_lost()),
        _ => return Err(Failure::connection("its authentication is not well-formed")),
    }
    bytes.clear();
    frontend::sasl_response(scram.message(), &mut bytes)?;
    greeting.say(&bytes).await?;
    match greeting.next().await? {
        // The server proves that it knows the password, too.
        Message::AuthenticationSaslFinal(body) => Ok(scram.finish(body.data())?),
        Message::ErrorResponse(body) => Err(Failure::from_server(&body).as_lost()),
        _ => Err(Failure::connection("its authentication is not well-formed")),
    }
}

//! A TCP proxy between PHP and each server: it delays, splits and cuts what goes through, and counts the packets, so
//! that clients can leave at each of them.

use std::{
    cell::Cell,
    io,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use socket2::SockRef;
use surus_tests::random::Random;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        tcp::{ReadHalf, WriteHalf},
        TcpListener, TcpStream,
    },
    sync::{watch, Notify},
    time::sleep,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Everything goes through as it comes.
    Calm,
    /// Packets are split and late.
    Choppy,
    /// Byte by byte.
    Dripping,
    /// As choppy, and a third of the connections is reset at some packet.
    Breaking,
    /// Nobody is there: connections are reset at once.
    Down,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    target: Cell<u16>,
    weather: Cell<Weather>,
    seed: u64,
    connections: Cell<u64>,
    packets: Cell<u64>,
    packet: Notify,
    /// Counts the resets of all connections.
    resets: watch::Sender<u64>,
}

/// Why a connection's way through the proxy is over.
enum Over {
    Closed,
    Cut,
}

impl Proxy {
    pub(crate) async fn start(target: u16, seed: u64) -> io::Result<Rc<Proxy>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let proxy = Rc::new(Proxy {
            port: listener.local_addr()?.port(),
            target: Cell::new(target),
            weather: Cell::new(Weather::Calm),
            seed,
            connections: Cell::new(0),
            packets: Cell::new(0),
            packet: Notify::new(),
            resets: watch::channel(0).0,
        });
        let accepting = proxy.clone();
        tokio::task::spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::task::spawn_local(accepting.clone().serve(stream));
                    }
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        });
        Ok(proxy)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set_target(&self, target: u16) {
        self.target.set(target);
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        self.weather.set(weather);
    }

    pub(crate) fn reset_all(&self) {
        self.resets.send_modify(|count| *count += 1);
    }

    /// Returns when so many more packets have gone through.
    pub(crate) async fn packets(&self, count: u64) {
        let end = self.packets.get() + count;
        while self.packets.get() < end {
            self.packet.notified().await;
        }
    }

    async fn serve(self: Rc<Self>, mut client: TcpStream) {
        let number = self.connections.get();
        self.connections.set(number + 1);
        let mut random = Random::of(self.seed, number);
        let mut resets = self.resets.subscribe();
        if self.weather.get() == Weather::Down {
            reset(&client);
            return;
        }
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, self.target.get()));
        let Ok(mut server) = TcpStream::connect(to).await else {
            reset(&client);
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let breaks = self.weather.get() == Weather::Breaking && random.once_in(3);
        let left = Cell::new(if breaks { random.below(24) } else { u64::MAX });
        let over = {
            let (from_client, to_client) = client.split();
            let (from_server, to_server) = server.split();
            let up = self.pump(from_client, to_server, random.clone(), &left);
            let down = self.pump(
                from_server,
                to_client,
                Random::of(random.number(), 1),
                &left,
            );
            tokio::pin!(up, down);
            tokio::select! {
                _ = resets.changed() => Over::Cut,
                over = &mut down => over,
                over = &mut up => match over {
                    Over::Cut => Over::Cut,
                    // Who has said everything may still wait for an answer.
                    Over::Closed => tokio::select! {
                        over = &mut down => over,
                        _ = resets.changed() => Over::Cut,
                        () = sleep(Duration::from_millis(200)) => Over::Closed,
                    },
                },
            }
        };
        if matches!(over, Over::Cut) {
            reset(&client);
            reset(&server);
        }
    }

    async fn pump(
        &self,
        mut from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
        mut random: Random,
        left: &Cell<u64>,
    ) -> Over {
        let mut block = vec![0; 16 * 1024];
        loop {
            let Ok(count) = from.read(&mut block).await else {
                return Over::Cut;
            };
            if count == 0 {
                let _ = to.shutdown().await;
                return Over::Closed;
            }
            let mut rest = &block[..count];
            // A large packet is not split for ever.
            let mut pieces = 0;
            while !rest.is_empty() {
                let size = match self.weather.get() {
                    Weather::Choppy | Weather::Breaking if pieces < 4 => {
                        1 + random.below(rest.len() as u64) as usize
                    }
                    Weather::Dripping if pieces < 40 => 1 + random.below(6) as usize,
                    _ => rest.len(),
                };
                let (piece, after) = rest.split_at(size.min(rest.len()));
                rest = after;
                pieces += 1;
                match self.weather.get() {
                    Weather::Calm => {}
                    Weather::Dripping => sleep(Duration::from_millis(1)).await,
                    _ if random.once_in(3) => {
                        sleep(Duration::from_millis(random.below(3))).await;
                    }
                    _ => {}
                }
                // A connection that is kept outlives its weather.
                if self.weather.get() == Weather::Breaking {
                    if left.get() == 0 {
                        return Over::Cut;
                    }
                    left.set(left.get() - 1);
                }
                if to.write_all(piece).await.is_err() {
                    return Over::Cut;
                }
                self.packets.set(self.packets.get() + 1);
                self.packet.notify_waiters();
            }
        }
    }
}

/// Its close will be a reset.
fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

//! From the file to a configuration: what a server cannot do is refused here.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use caves_session::IpNet;
use caves_session::caves::{Ban, BanTarget, ClientEntry, check_name, fold_name};
use caves_wire::caves::{ClientType, Token, tag};
use caves_wire::text;
use toml::Spanned;

use super::error::{ConfigError, NOT_A_TOKEN, Source};
use super::file::{
    self, BanTable, ClientTable, ControlTable, File, LimitsTable, MetricsTable, ServerTable,
    WorldTable,
};
use super::{Config, ControlConfig, StoreConfig, loopback};

/// Sockets at most: each turn of the loop asks them all.
const MAX_SOCKETS: usize = 64;
/// A registered token below this could be guessed (R30).
const MIN_TOKEN: u64 = 1 << 32;
/// What fits a Refuse that answers the shortest Join with a name, and more than a sentence.
const MAX_REASON: usize = 200;
/// The longest path that Linux opens.
const MAX_PATH: usize = 4095;
/// What the address of a Unix socket has room for.
const MAX_SOCKET_PATH: usize = 107;

type Checked<T> = Result<T, ConfigError>;

/// A configuration to which layers are added: the defaults before the first.
#[derive(Debug)]
pub(super) struct Draft {
    config: Config,
    /// Kept here also without a socket: a later layer may name one.
    control_mode: u32,
}

impl Draft {
    pub(super) fn new() -> Self {
        Self { config: Config::default(), control_mode: ControlConfig::DEFAULT_MODE }
    }

    /// Puts what a layer says over what is there. After an error the draft is of no use.
    pub(super) fn apply(&mut self, source: Source<'_>, file: File) -> Checked<()> {
        let config = &mut self.config;
        let File { server, world, session, limits, client, ban, control, metrics, log } = file;
        source.server(server, config)?;
        source.world(world, config)?;
        source.seconds("session.timeout_s", session.timeout_s, 3, &mut config.session.timeout)?;
        source.limits(limits, config)?;
        if let Some(client) = client {
            config.session.clients = source.clients(client)?;
        }
        if let Some(ban) = ban {
            let bans = ban.into_iter().map(|entry| source.ban(entry));
            config.session.bans = bans.collect::<Checked<_>>()?;
        }
        source.control(control, &mut config.control, &mut self.control_mode)?;
        source.metrics(metrics, &mut config.metrics)?;
        config.log.level = log.level.unwrap_or(config.log.level);
        config.log.format = log.format.unwrap_or(config.log.format);
        Ok(())
    }

    pub(super) fn finish(self) -> Config {
        self.config
    }
}

impl Source<'_> {
    fn server(self, table: ServerTable, config: &mut Config) -> Checked<()> {
        let session = &mut config.session;
        if let Some(name) = table.name {
            session.name = self.line("server.name", &name, 1..=tag::MAX_SERVER_NAME)?;
        }
        if let Some(motd) = table.motd {
            session.motd = self.line("server.motd", &motd, 0..=tag::MAX_MOTD)?;
        }
        self.number("server.max_players", table.max_players, 1..=10_000, &mut session.max_players)?;
        self.number("server.tick_rate", table.tick_rate, 1..=20, &mut session.tick_rate)?;
        self.number("server.threads", table.threads, 1..=2, &mut config.threads)?;
        session.open = table.open.unwrap_or(session.open);
        if let Some(listen) = table.listen {
            config.listen = self.listen(&listen)?;
        }
        Ok(())
    }

    fn listen(self, list: &Spanned<Vec<Spanned<String>>>) -> Checked<Vec<SocketAddr>> {
        const KEY: &str = "server.listen";
        if !(1..=MAX_SOCKETS).contains(&list.get_ref().len()) {
            let message = format!("1 to {MAX_SOCKETS} addresses are needed");
            return Err(self.wrong(KEY, list.span(), &message));
        }
        let mut all: Vec<SocketAddr> = Vec::new();
        for entry in list.get_ref() {
            let addr = self.socket_addr(KEY, entry)?;
            if all.contains(&addr) && addr.port() != 0 {
                return Err(self.wrong(KEY, entry.span(), &format!("{addr} is listed twice")));
            }
            all.push(addr);
        }
        Ok(all)
    }

    fn socket_addr(self, key: &str, given: &Spanned<String>) -> Checked<SocketAddr> {
        let text = given.get_ref();
        text.parse()
            .map_err(|_| self.wrong(key, given.span(), &format!("{text:?} is no \"ADDRESS:PORT\"")))
    }

    fn world(self, table: WorldTable, config: &mut Config) -> Checked<()> {
        config.seed = table.seed.map(|file::Seed(seed)| seed).or(config.seed);
        if let Some(store) = table.store {
            config.store = match self.line("world.store", &store, 1..=MAX_PATH)?.as_str() {
                "memory" => StoreConfig::Memory,
                path => StoreConfig::File(PathBuf::from(path)),
            };
        }
        let interval = &mut config.save_interval;
        self.seconds("world.save_interval_s", table.save_interval_s, 1, interval)
    }

    fn control(
        self,
        table: ControlTable,
        control: &mut Option<ControlConfig>,
        mode: &mut u32,
    ) -> Checked<()> {
        if let Some(given) = table.mode {
            *mode = file::permissions(given.get_ref()).ok_or_else(|| {
                let message = format!("{:?} is not within \"0000\" to \"0777\"", given.get_ref());
                self.wrong("control.mode", given.span(), &message)
            })?;
        }
        let socket = match table.socket {
            Some(given) => match self.line("control.socket", &given, 0..=MAX_SOCKET_PATH)? {
                none if none.is_empty() => None,
                path => Some(PathBuf::from(path)),
            },
            None => control.take().map(|control| control.socket),
        };
        *control = socket.map(|socket| ControlConfig { socket, mode: *mode });
        Ok(())
    }

    fn metrics(self, table: MetricsTable, metrics: &mut Option<SocketAddr>) -> Checked<()> {
        if let Some(given) = table.listen {
            *metrics = match given.get_ref().as_str() {
                "" => None,
                _ => Some(self.socket_addr("metrics.listen", &given)?),
            };
        }
        Ok(())
    }

    fn limits(self, table: LimitsTable, config: &mut Config) -> Checked<()> {
        let session = &mut config.session;
        let strangers = &mut session.strangers;
        self.number(
            "limits.strangers_per_second",
            table.strangers_per_second,
            1..=100_000,
            &mut strangers.per_second,
        )?;
        self.number(
            "limits.strangers_burst",
            table.strangers_burst,
            1..=100_000,
            &mut strangers.burst,
        )?;
        self.number(
            "limits.strangers_total_per_second",
            table.strangers_total_per_second,
            1..=1_000_000,
            &mut strangers.total_per_second,
        )?;
        self.number(
            "limits.sessions_per_address",
            table.sessions_per_address,
            1..=10_000,
            &mut session.sessions_per_address,
        )?;
        if let Some(exempt) = table.exempt {
            strangers.exempt = self.networks("limits.exempt", exempt.get_ref())?;
        }
        Ok(())
    }

    fn clients(self, tables: Vec<ClientTable>) -> Checked<Vec<ClientEntry>> {
        let mut seen = Seen::default();
        tables.into_iter().map(|table| self.client(table, &mut seen)).collect()
    }

    fn client(self, table: ClientTable, seen: &mut Seen) -> Checked<ClientEntry> {
        let mut client_type = 0;
        self.number("client.client_type", Some(table.client_type), 0..=u16::MAX, &mut client_type)?;
        let name = table.name.as_ref().map(|name| self.name("client.name", name)).transpose()?;
        if let (Some(given), Some(name)) = (&table.name, &name) {
            self.once(
                "client.name",
                given.span(),
                seen.names.insert(fold_name(name), given.span()),
            )?;
        }
        let token = table.token.as_ref().map(|token| self.token(token)).transpose()?;
        if let (Some(given), Some(token)) = (&table.token, token) {
            if name.is_none() {
                let message = "a registered client needs a name beside its token";
                return Err(self.wrong("client.token", given.span(), message));
            }
            self.once("client.token", given.span(), seen.tokens.insert(token, given.span()))?;
        }
        let from = match table.from {
            Some(from) => self.networks("client.from", from.get_ref())?,
            None => loopback(),
        };
        Ok(ClientEntry {
            client_type: ClientType(client_type),
            name,
            allow: table.allow.unwrap_or(true),
            token,
            from,
            tags: table.tags.unwrap_or(false),
        })
    }

    /// Refuses a value that another entry has already.
    fn once(self, key: &str, here: Range<usize>, there: Option<Range<usize>>) -> Checked<()> {
        let Some(there) = there else { return Ok(()) };
        let line = self.text[..there.start].matches('\n').count() + 1;
        Err(self.wrong(key, here, &format!("the entry of line {line} has it already")))
    }

    fn token(self, given: &Spanned<String>) -> Checked<Token> {
        match file::hexadecimal(given.get_ref()) {
            Some(token) if token >= MIN_TOKEN => Ok(Token(token)),
            Some(_) => Err(self.wrong("client.token", given.span(), "it is below 0x100000000")),
            None => Err(self.wrong("client.token", given.span(), NOT_A_TOKEN)),
        }
    }

    fn ban(self, entry: Spanned<BanTable>) -> Checked<Ban> {
        let span = entry.span();
        let BanTable { address, name, reason } = entry.into_inner();
        let target = match (address, name) {
            (Some(address), None) => BanTarget::Address(self.network("ban.address", &address)?),
            (None, Some(name)) => BanTarget::Name(self.name("ban.name", &name)?),
            (Some(_), Some(name)) => {
                return Err(self.wrong(
                    "ban.name",
                    name.span(),
                    "the entry has an address already",
                ));
            }
            (None, None) => return Err(self.wrong("ban", span, "an address or a name is needed")),
        };
        let reason = match reason {
            Some(reason) => self.line("ban.reason", &reason, 0..=MAX_REASON)?,
            None => "banned".to_owned(),
        };
        Ok(Ban { target, reason })
    }

    /// Whole seconds, up to an hour.
    fn seconds(
        self,
        key: &str,
        given: Option<Spanned<i64>>,
        least: u64,
        place: &mut Duration,
    ) -> Checked<()> {
        let mut seconds = place.as_secs();
        self.number(key, given, least..=3600, &mut seconds)?;
        *place = Duration::from_secs(seconds);
        Ok(())
    }

    fn number<T>(
        self,
        key: &str,
        given: Option<Spanned<i64>>,
        range: RangeInclusive<T>,
        place: &mut T,
    ) -> Checked<()>
    where
        T: TryFrom<i64> + PartialOrd + Display + Copy,
    {
        let Some(given) = given else { return Ok(()) };
        match T::try_from(*given.get_ref()) {
            Ok(number) if range.contains(&number) => {
                *place = number;
                Ok(())
            }
            _ => {
                let (number, least, most) = (given.get_ref(), range.start(), range.end());
                let message = format!("{number} is not within {least} to {most}");
                Err(self.wrong(key, given.span(), &message))
            }
        }
    }

    /// A text of one line that may be shown (R32).
    fn line(
        self,
        key: &str,
        given: &Spanned<String>,
        len: RangeInclusive<usize>,
    ) -> Checked<String> {
        let line = given.get_ref();
        if !len.contains(&line.len()) {
            let (got, least, most) = (line.len(), len.start(), len.end());
            let message = format!("it has {got} bytes, {least} to {most} are allowed");
            return Err(self.wrong(key, given.span(), &message));
        }
        if !text::is_clean(line) {
            let message = "it holds control or invisible characters";
            return Err(self.wrong(key, given.span(), message));
        }
        Ok(line.clone())
    }

    fn name(self, key: &str, given: &Spanned<String>) -> Checked<String> {
        check_name(given.get_ref().as_bytes())
            .map(str::to_owned)
            .map_err(|error| self.wrong(key, given.span(), &error.to_string()))
    }

    fn networks(self, key: &str, list: &[Spanned<String>]) -> Checked<Vec<IpNet>> {
        list.iter().map(|entry| self.network(key, entry)).collect()
    }

    /// A network, or one address.
    fn network(self, key: &str, given: &Spanned<String>) -> Checked<IpNet> {
        let text = given.get_ref();
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let wrong = |message: &str| self.wrong(key, given.span(), message);
        match network {
            // Peers are known by their IPv4 address then, so it would hold nobody.
            Ok(IpNet::V6(v6)) if v6.addr().to_ipv4_mapped().is_some() => {
                Err(wrong("write an IPv4 address without \"::ffff:\""))
            }
            Ok(network) => Ok(network.trunc()),
            Err(_) => Err(wrong(&format!("{text:?} is no \"ADDRESS\" or \"ADDRESS/BITS\""))),
        }
    }
}

/// What no two entries may share, and where it stands.
#[derive(Default)]
struct Seen {
    names: HashMap<String, Range<usize>>,
    tokens: HashMap<Token, Range<usize>>,
}

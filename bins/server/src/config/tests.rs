//! What the file may say, and what is said about the rest.

use super::*;
use caves_session::caves::{Ban, BanTarget, ClientEntry};
use caves_wire::caves::{ClientType, Token};
use std::collections::BTreeSet;
use std::time::Duration;

fn parse(text: &str) -> Config {
    Config::parse("config.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    Config::parse("config.toml", text).unwrap_err().to_string()
}

/// The error's first line: file, line, key and what is wrong.
fn complaint(text: &str) -> String {
    error(text).lines().next().unwrap().to_owned()
}

/// Everything in a configuration, to compare two of them.
fn everything(config: &Config) -> String {
    format!("{config:#?}")
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

#[test]
fn an_empty_file_says_the_defaults() {
    let config = parse("");
    assert_eq!(config.threads, 1);
    let Config { session, listen, threads: _, seed, store, save_interval, control, metrics, log } =
        config;
    assert_eq!((session.name.as_str(), session.motd.as_str()), ("Forgotten Caves", ""));
    assert_eq!(listen, ["127.0.0.1:21068".parse().unwrap()]);
    assert_eq!((session.max_players, session.tick_rate, session.open), (64, 10, false));
    assert_eq!(seed, None);
    assert_eq!(store, StoreConfig::File("caves.redb".into()));
    assert_eq!(save_interval, Duration::from_secs(1));
    // 0600 is 6 * 64.
    assert_eq!(control, Some(ControlConfig { socket: "caves.sock".into(), mode: 384 }));
    assert_eq!(metrics, None);
    assert_eq!(session.timeout, Duration::from_secs(10));
    let strangers = &session.strangers;
    assert_eq!((strangers.per_second, strangers.burst), (10, 20));
    assert_eq!(strangers.total_per_second, 2000);
    assert_eq!(strangers.exempt, [net("127.0.0.0/8"), net("::1/128")]);
    assert_eq!(session.sessions_per_address, 8);
    assert_eq!((session.clients.len(), session.bans.len()), (0, 0));
    assert_eq!(log, LogConfig { level: LogLevel::Info, format: LogFormat::Text });
}

#[test]
fn every_key_can_be_set() {
    let config = parse(
        r#"
        ban = [{ name = "Mallory" }, { address = "2001:db8::7", reason = "" }]
        [server]
        name = "Grüße"
        motd = "hello"
        listen = ["0.0.0.0:1", "[::]:1", "127.0.0.1:0", "127.0.0.1:0"]
        max_players = 10000
        tick_rate = 20
        threads = 2
        open = true
        [world]
        seed = 9223372036854775807
        store = "/var/lib/caves/Grüße.redb"
        save_interval_s = 3600
        [session]
        timeout_s = 3600
        [limits]
        strangers_per_second = 1
        strangers_burst = 2
        strangers_total_per_second = 3
        sessions_per_address = 4
        exempt = ["192.0.2.77/24", "198.51.100.1", "2001:db8::/32"]
        [[client]]
        client_type = 65535
        allow = false
        [[client]]
        client_type = 7
        name = "Ada"
        token = "0x100000000"
        from = []
        tags = true
        [control]
        socket = "/run/caves/caves.sock"
        mode = "0660"
        [metrics]
        listen = "[::1]:21069"
        [log]
        level = "trace"
        format = "json"
        "#,
    );
    assert_eq!(config.threads, 2);
    let Config { session, listen, threads: _, seed, store, save_interval, control, metrics, log } =
        config;
    assert_eq!((session.name.as_str(), session.motd.as_str()), ("Grüße", "hello"));
    let addrs: Vec<String> = listen.iter().map(SocketAddr::to_string).collect();
    assert_eq!(addrs, ["0.0.0.0:1", "[::]:1", "127.0.0.1:0", "127.0.0.1:0"]);
    assert_eq!((session.max_players, session.tick_rate, session.open), (10_000, 20, true));
    assert_eq!(seed, Some(0x7FFF_FFFF_FFFF_FFFF));
    assert_eq!(store, StoreConfig::File("/var/lib/caves/Grüße.redb".into()));
    assert_eq!(save_interval, Duration::from_secs(3600));
    // 0660 is 6 * 64 + 6 * 8.
    assert_eq!(control, Some(ControlConfig { socket: "/run/caves/caves.sock".into(), mode: 432 }));
    assert_eq!(metrics, Some("[::1]:21069".parse().unwrap()));
    assert_eq!(session.timeout, Duration::from_secs(3600));
    let strangers = &session.strangers;
    assert_eq!((strangers.per_second, strangers.burst), (1, 2));
    assert_eq!(strangers.total_per_second, 3);
    let exempt = [net("192.0.2.0/24"), net("198.51.100.1/32"), net("2001:db8::/32")];
    assert_eq!(strangers.exempt, exempt);
    assert_eq!(session.sessions_per_address, 4);
    let kind = ClientEntry {
        client_type: ClientType(65535),
        name: None,
        allow: false,
        token: None,
        from: vec![net("127.0.0.0/8"), net("::1/128")],
        tags: false,
    };
    let ada = ClientEntry {
        client_type: ClientType(7),
        name: Some("Ada".into()),
        allow: true,
        token: Some(Token(1 << 32)),
        from: vec![],
        tags: true,
    };
    assert_eq!(session.clients, [kind, ada]);
    let bans = [
        Ban { target: BanTarget::Name("Mallory".into()), reason: "banned".into() },
        Ban { target: BanTarget::Address(net("2001:db8::7/128")), reason: String::new() },
    ];
    assert_eq!(session.bans, bans);
    assert_eq!(log, LogConfig { level: LogLevel::Trace, format: LogFormat::Json });
}

#[test]
fn the_printed_configuration_says_the_defaults() {
    assert_eq!(everything(&parse(Config::TEMPLATE)), everything(&parse("")));
}

#[test]
fn the_printed_configuration_has_every_key_and_its_examples_are_valid() {
    // An unknown key is answered with all that are known, in backticks after itself.
    let known = |text: &str| -> BTreeSet<String> {
        complaint(text).split('`').skip(3).step_by(2).map(str::to_owned).collect()
    };
    let mut examples = String::new();
    for line in Config::TEMPLATE.lines() {
        let example = line.strip_prefix('#').filter(|rest| !rest.starts_with(' '));
        examples += example.unwrap_or(line);
        examples.push('\n');
    }
    let config = parse(&examples);
    assert_eq!(config.seed, Some(1));
    assert_eq!((config.session.clients.len(), config.session.bans.len()), (1, 2));

    let printed: toml::Table = examples.parse().unwrap();
    assert_eq!(printed.keys().cloned().collect::<BTreeSet<_>>(), known("x = 1"));
    let keys = |value: &toml::Value| value.as_table().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut count = 0;
    for (table, value) in &printed {
        let (printed, head): (BTreeSet<String>, _) = match value.as_array() {
            Some(entries) => (entries.iter().flat_map(keys).collect(), format!("[[{table}]]")),
            None => (keys(value).into_iter().collect(), format!("[{table}]")),
        };
        count += printed.len();
        assert_eq!(printed, known(&format!("{head}\nx = 1")), "{table}");
    }
    assert_eq!(count, 7 + 3 + 1 + 5 + 6 + 3 + 2 + 1 + 2);
}

#[test]
fn a_solo_server_listens_on_a_free_port_of_the_loopback() {
    let Config { session, listen, seed, .. } = Config::solo();
    assert_eq!(listen, ["127.0.0.1:0".parse().unwrap()]);
    assert_eq!((session.name.as_str(), seed), ("solo", None));
}

#[test]
fn an_unknown_key_is_shown_with_the_names_that_are_known() {
    assert_eq!(
        error("[server]\nname = \"x\"\ntick_rat = 5\n"),
        "config.toml:3: server: unknown field `tick_rat`, expected one of `name`, `motd`, \
         `listen`, `max_players`, `tick_rate`, `threads`, `open`
  |
3 | tick_rat = 5
  | ^^^^^^^^"
    );
    assert_eq!(
        error("\n\n[sever]\n"),
        "config.toml:3: unknown field `sever`, expected one of `server`, `world`, `session`, \
         `limits`, `client`, `ban`, `control`, `metrics`, `log`
  |
3 | [sever]
  |  ^^^^^"
    );
    assert_eq!(
        error("[[client]]\nclient_type = 1\n\n[[client]]\nclient_type = 1\nTOKEN = \"0x1\"\n"),
        "config.toml:6: client: unknown field `TOKEN`, expected one of `client_type`, `name`, \
         `allow`, `token`, `from`, `tags`
  |
6 | TOKEN = \"0x1\"
  | ^^^^^"
    );
}

#[test]
fn what_is_no_toml_is_shown() {
    assert_eq!(
        error("[server]\nmotd = \"a\n"),
        "config.toml:2: invalid basic string, expected `\"`
  |
2 | motd = \"a
  |          ^"
    );
    assert_eq!(
        error("[log]\nlevel = \"info\"\nlevel = \"info\"\n"),
        "config.toml:3: duplicate key
  |
3 | level = \"info\"
  | ^^^^^"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_shown_with_its_key() {
    assert_eq!(
        error("server = { tick_rate = \"10\" }"),
        "config.toml:1: server.tick_rate: invalid type: string \"10\", expected i64
  |
1 | server = { tick_rate = \"10\" }
  |                        ^^^^"
    );
    assert_eq!(
        complaint("server = 3"),
        "config.toml:1: server: invalid type: integer `3`, expected a table"
    );
    assert_eq!(
        complaint("[[client]]\nallow = true"),
        "config.toml:1: client: missing field `client_type`"
    );
    assert_eq!(
        complaint("[log]\nlevel = \"loud\""),
        "config.toml:2: log.level: unknown variant `loud`, expected one of `error`, `warn`, \
         `info`, `debug`, `trace`"
    );
}

#[test]
fn numbers_stay_within_their_bounds() {
    assert_eq!(
        error("# a comment\n[server]\ntick_rate = 50 # too fast\n"),
        "config.toml:3: server.tick_rate: 50 is not within 1 to 20
  |
3 | tick_rate = 50 # too fast
  |             ^^"
    );
    let cases = [
        ("server", "max_players", 1, 10_000),
        ("server", "tick_rate", 1, 20),
        ("server", "threads", 1, 2),
        ("world", "save_interval_s", 1, 3600),
        ("session", "timeout_s", 3, 3600),
        ("limits", "strangers_per_second", 1, 100_000),
        ("limits", "strangers_burst", 1, 100_000),
        ("limits", "strangers_total_per_second", 1, 1_000_000),
        ("limits", "sessions_per_address", 1, 10_000),
    ];
    for (table, key, least, most) in cases {
        for good in [least, most] {
            parse(&format!("[{table}]\n{key} = {good}"));
        }
        for bad in [least - 1, most + 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(
                complaint(&format!("[{table}]\n{key} = {bad}")),
                format!("config.toml:2: {table}.{key}: {bad} is not within {least} to {most}")
            );
        }
    }
    assert_eq!(
        complaint("[[client]]\nclient_type = 65536"),
        "config.toml:2: client.client_type: 65536 is not within 0 to 65535"
    );
}

#[test]
fn a_seed_is_a_number_or_hexadecimal_digits() {
    let seed = |value: &str| parse(&format!("[world]\nseed = {value}")).seed;
    assert_eq!(seed("0"), Some(0));
    assert_eq!(seed("\"0xFFFFFFFFFFFFFFFF\""), Some(u64::MAX));
    assert_eq!(seed("18446744073709551615"), Some(u64::MAX));
    let expected = "expected a whole number from 0 to 2^64 - 1, or one like \"0x1f\"";
    for (value, told) in [
        ("-1", "invalid value: integer `-1`"),
        ("\"abc\"", "invalid value: string \"abc\""),
        ("1.5", "invalid type: floating point `1.5`"),
        ("18446744073709551616", "invalid type: integer `18446744073709551616` as i128"),
    ] {
        assert_eq!(
            complaint(&format!("[world]\nseed = {value}")),
            format!("config.toml:2: world.seed: {told}, {expected}")
        );
    }
}

#[test]
fn a_world_is_kept_in_a_file_or_in_memory() {
    let store = |value: &str| parse(&format!("[world]\nstore = \"{value}\"\n")).store;
    assert_eq!(store("memory"), StoreConfig::Memory);
    assert_eq!(store("./memory"), StoreConfig::File("./memory".into()));
    assert_eq!(store("a/b.redb"), StoreConfig::File("a/b.redb".into()));
    assert_eq!(
        error("[world]\nstore = \"\"\n"),
        "config.toml:2: world.store: it has 0 bytes, 1 to 4095 are allowed
  |
2 | store = \"\"
  |         ^^"
    );
    assert_eq!(
        complaint("[world]\nstore = \"a\\nb\""),
        "config.toml:2: world.store: it holds control or invisible characters"
    );
}

#[test]
fn commands_are_taken_on_a_socket_with_permissions_or_nowhere() {
    let control = |text: &str| parse(&format!("[control]\n{text}\n")).control;
    assert_eq!(control("socket = \"\"\nmode = \"0777\""), None);
    let longest = "s".repeat(107);
    assert_eq!(control(&format!("socket = \"{longest}\"")).unwrap().socket, Path::new(&longest));
    assert_eq!(
        complaint(&format!("[control]\nsocket = \"{longest}s\"")),
        "config.toml:2: control.socket: it has 108 bytes, 0 to 107 are allowed"
    );
    assert_eq!(control("mode = \"0777\"").unwrap().mode, 511);
    assert_eq!(control("mode = \"0000\"").unwrap().mode, 0);
    assert_eq!(
        error("[control]\nmode = \"1777\"\n"),
        "config.toml:2: control.mode: \"1777\" is not within \"0000\" to \"0777\"
  |
2 | mode = \"1777\"
  |        ^^^^^^"
    );
    assert_eq!(
        complaint("[control]\nmode = 600"),
        "config.toml:2: control.mode: invalid type: integer `600`, expected a string"
    );
}

#[test]
fn figures_are_told_at_an_address_or_nowhere() {
    let metrics = |value: &str| parse(&format!("[metrics]\nlisten = \"{value}\"")).metrics;
    assert_eq!(metrics(""), None);
    assert_eq!(metrics("127.0.0.1:21069"), Some(([127, 0, 0, 1], 21069).into()));
    assert_eq!(
        error("[metrics]\nlisten = \"21069\"\n"),
        "config.toml:2: metrics.listen: \"21069\" is no \"ADDRESS:PORT\"
  |
2 | listen = \"21069\"
  |          ^^^^^^^"
    );
}

#[test]
fn a_server_for_one_touches_no_file_and_takes_no_commands() {
    let Config { store, control, metrics, .. } = Config::solo();
    assert_eq!((store, control, metrics), (StoreConfig::Memory, None, None));
}

#[test]
fn texts_are_limited_in_bytes_and_hold_nothing_invisible() {
    let server = |key: &str, value: &str| format!("[server]\n{key} = \"{value}\"");
    parse(&server("name", &"é".repeat(32)));
    parse(&server("motd", &"m".repeat(512)));
    assert_eq!(
        complaint(&server("name", &"é".repeat(33))),
        "config.toml:2: server.name: it has 66 bytes, 1 to 64 are allowed"
    );
    assert_eq!(
        complaint(&server("name", "")),
        "config.toml:2: server.name: it has 0 bytes, 1 to 64 are allowed"
    );
    assert_eq!(
        complaint(&server("motd", &"m".repeat(513))),
        "config.toml:2: server.motd: it has 513 bytes, 0 to 512 are allowed"
    );
    for bad in ["a\\nb", "\\u202Eb", "a\u{200B}"] {
        assert_eq!(
            complaint(&server("motd", bad)),
            "config.toml:2: server.motd: it holds control or invisible characters"
        );
    }
}

#[test]
fn there_is_something_to_listen_on_and_nothing_twice() {
    assert_eq!(
        error("[server]\nlisten = []\n"),
        "config.toml:2: server.listen: 1 to 64 addresses are needed
  |
2 | listen = []
  |          ^^"
    );
    let many = vec!["\"127.0.0.1:0\""; 65].join(", ");
    assert_eq!(
        complaint(&format!("[server]\nlisten = [{many}]")),
        "config.toml:2: server.listen: 1 to 64 addresses are needed"
    );
    assert_eq!(
        error("[server]\nlisten = [\n  \"127.0.0.1:5\",\n  \"localhost:5\",\n]\n"),
        "config.toml:4: server.listen: \"localhost:5\" is no \"ADDRESS:PORT\"
  |
4 |   \"localhost:5\",
  |   ^^^^^^^^^^^^^"
    );
    assert_eq!(
        complaint("[server]\nlisten = [\"[::1]:5\", \"127.0.0.1:5\", \"[0::1]:5\"]"),
        "config.toml:2: server.listen: [::1]:5 is listed twice"
    );
}

#[test]
fn networks_are_addresses_with_or_without_bits() {
    let exempt = |value: &str| format!("[limits]\nexempt = [\"10.0.0.0/8\", \"{value}\"]");
    assert_eq!(
        error(&exempt("10.0.0.0/33")),
        "config.toml:2: limits.exempt: \"10.0.0.0/33\" is no \"ADDRESS\" or \"ADDRESS/BITS\"
  |
2 | exempt = [\"10.0.0.0/8\", \"10.0.0.0/33\"]
  |                         ^^^^^^^^^^^^^"
    );
    assert_eq!(
        complaint(&exempt("::ffff:10.0.0.0/104")),
        "config.toml:2: limits.exempt: write an IPv4 address without \"::ffff:\""
    );
    assert_eq!(
        complaint("[[client]]\nclient_type = 1\nfrom = [\"here\"]"),
        "config.toml:3: client.from: \"here\" is no \"ADDRESS\" or \"ADDRESS/BITS\""
    );
    assert!(parse("[limits]\nexempt = []").session.strangers.exempt.is_empty());
}

#[test]
fn tokens_are_large_and_belong_to_one_name() {
    let client =
        |token: &str| format!("[[client]]\nclient_type = 1\nname = \"A\"\ntoken = {token}\n");
    parse(&client("\"0x100000000\""));
    assert_eq!(
        error(&client("\"0xffffffff\"")),
        "config.toml:4: client.token: it is below 0x100000000
  |
4 | token = \"0xffffffff\"
  |         ^^^^^^^^^^^^"
    );
    for bad in ["\"\"", "\"0x\"", "\"123456789012\"", "\"0x12345678901234567\"", "\"0x1 \""] {
        assert_eq!(
            complaint(&client(bad)),
            "config.toml:4: client.token: expected \"0x\" and up to 16 hexadecimal digits"
        );
    }
    assert_eq!(
        complaint("[[client]]\nclient_type = 1\ntoken = \"0x100000000\""),
        "config.toml:3: client.token: a registered client needs a name beside its token"
    );
    let second = "[[client]]\nclient_type = 1\nname = \"B\"\ntoken = \"0x0100000000\"\n";
    assert_eq!(
        error(&(client("\"0x100000000\"") + "\n" + second)),
        "config.toml:9: client.token: the entry of line 4 has it already
  |
9 | token = \"************\"
  |         ^^^^^^^^^^^^^^"
    );
}

#[test]
fn names_of_clients_follow_the_players_rules() {
    let client = |name: &str| format!("[[client]]\nclient_type = 1\nname = \"{name}\"\n");
    let told = |message: &str| format!("config.toml:3: client.name: {message}");
    assert_eq!(complaint(&client("")), told("a name has 1 to 32 bytes"));
    assert_eq!(complaint(&client(&"n".repeat(33))), told("a name has 1 to 32 bytes"));
    assert_eq!(complaint(&client(" n")), told("a name does not start or end with a space"));
    assert_eq!(complaint(&client("n\\u0007")), told("a name holds no invisible characters"));
    parse(&client(&"n".repeat(32)));
    assert_eq!(
        complaint(&(client("Ada") + &client("ＡＤＡ"))),
        "config.toml:6: client.name: the entry of line 3 has it already"
    );
}

#[test]
fn a_ban_is_about_an_address_or_a_name() {
    assert_eq!(
        error("[[ban]]\nreason = \"x\"\n"),
        "config.toml:1: ban: an address or a name is needed
  |
1 | [[ban]]
  | ^^^^^^^"
    );
    assert_eq!(
        complaint("[[ban]]\naddress = \"192.0.2.1\"\nname = \"x\""),
        "config.toml:3: ban.name: the entry has an address already"
    );
    assert_eq!(
        complaint("[[ban]]\naddress = \"x\""),
        "config.toml:2: ban.address: \"x\" is no \"ADDRESS\" or \"ADDRESS/BITS\""
    );
    assert_eq!(
        complaint("[[ban]]\nname = \"\""),
        "config.toml:2: ban.name: a name has 1 to 32 bytes"
    );
    let reason = "r".repeat(201);
    assert_eq!(
        complaint(&format!("[[ban]]\nname = \"x\"\nreason = \"{reason}\"")),
        "config.toml:3: ban.reason: it has 201 bytes, 0 to 200 are allowed"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load(Path::new("/nonexistent/caves.toml")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/nonexistent/caves.toml: cannot be read: No such file or directory (os error 2)"
    );
}

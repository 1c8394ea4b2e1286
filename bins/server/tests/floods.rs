//! Floods of strangers from ten thousand addresses against the real program on real sockets, and
//! players who want to come in meanwhile (R22). Figures go to standard output: `--nocapture`.

#![allow(clippy::print_stdout, reason = "figures for notes/security.md")]

mod common;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use caves_game::client::ClientEvent;
use caves_wire::caves::{
    ChallengeView, ClientType, Echo, Hello, InfoRequest, Join, Nonce, RefuseReason, RefuseView, tag,
};
use caves_wire::tlv::TlvWriter;
use common::visitor::Visitor;
use common::{PATIENCE, ServerProcess};

/// Addresses that flood.
const CROWD: usize = 10_000;
/// Datagrams a second, from all of them. `CAVES_FLOOD_PACE` in the environment asks for another
/// figure, to measure with.
const PACE: u32 = 20_000;
/// Sockets that are open at once: few enough for any system's limit.
const AT_ONCE: usize = 100;
/// Datagrams from one address in a turn.
const IN_A_TURN: usize = 2;
/// Until a crowd that asks for the first time has been answered twice, 1,000 a second.
const ONSET: Duration = Duration::from_secs(22);
/// What R22 leaves of this crowd's datagrams: 2,000 a second.
const TOTAL: u32 = 2000;
/// How long a player may wait (`notes/security.md`).
const SOON: Duration = Duration::from_secs(2);

/// What the crowd sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    Hellos,
    Pings,
    InfoRequests,
    ForgedJoins,
    /// Joins with true cookies, under a name that is taken.
    TrueJoins,
    /// Joins with true cookies that are let in while there is room.
    Sessions,
}

/// Strangers, each at an address of its own, and what is between them and the server.
struct Crowd {
    server: SocketAddr,
    strangers: Vec<Stranger>,
    /// Who has the next turn.
    next: usize,
}

struct Stranger {
    ip: IpAddr,
    cookie: Option<[u8; 16]>,
    sent: u64,
    received: u64,
}

/// Says that it is over when it goes, also by a failed assertion: no thread runs on then.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a flood did.
#[derive(Default, Debug)]
struct Tally {
    offered: u64,
    answered: u64,
    seconds: f64,
}

impl Crowd {
    fn new(server: SocketAddr, ip: impl Fn(u32) -> IpAddr) -> Self {
        let stranger = |n| Stranger { ip: ip(n), cookie: None, sent: 0, received: 0 };
        let strangers = (0..CROWD as u32).map(stranger).collect();
        Self { server, strangers, next: 0 }
    }

    /// Floods until it is over, at the pace that was asked for or as fast as this machine can.
    fn flood(&mut self, flood: Flood, over: &AtomicBool) -> Tally {
        let pace = std::env::var("CAVES_FLOOD_PACE").ok().and_then(|pace| pace.parse().ok());
        let start = Instant::now();
        let mut tally = Tally::default();
        while !over.load(Ordering::Relaxed) {
            self.turn(flood, &mut tally, |offered| {
                // Evenly: between two bursts there would be room for anybody.
                let due = Duration::from_secs(offered) / pace.unwrap_or(PACE);
                thread::sleep(due.saturating_sub(start.elapsed()));
            });
        }
        tally.seconds = start.elapsed().as_secs_f64();
        tally
    }

    /// Some of the crowd open a socket, ask, and read what they are answered meanwhile.
    fn turn(&mut self, flood: Flood, tally: &mut Tally, wait: impl Fn(u64)) {
        let mut open = Vec::with_capacity(AT_ONCE);
        for _ in 0..AT_ONCE {
            let place = self.next;
            self.next = (self.next + 1) % self.strangers.len();
            let stranger = &mut self.strangers[place];
            // The port of the server, at another address: so a cookie is good for the next turn.
            let Ok(socket) = UdpSocket::bind((stranger.ip, self.server.port())) else { continue };
            socket.connect(self.server).expect("a route to ourselves");
            socket.set_nonblocking(true).expect("a socket of ours");
            let question = stranger.question(flood, place as u64);
            for _ in 0..IN_A_TURN {
                if socket.send(&question).is_ok() {
                    tally.offered += 1;
                    stranger.sent += question.len() as u64;
                }
            }
            open.push((place, socket));
            wait(tally.offered);
        }
        for (place, socket) in open {
            self.strangers[place].listen(&socket, tally);
        }
    }

    /// Nobody was ever sent more than he sent, and so is nobody else in his name.
    fn assert_not_multiplied(&self) {
        for Stranger { ip, sent, received, .. } in &self.strangers {
            assert!(received <= sent, "{received} bytes for {sent} to {ip}");
        }
    }
}

impl Stranger {
    fn question(&self, flood: Flood, number: u64) -> Vec<u8> {
        let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(number));
        match (flood, self.cookie) {
            (Flood::Pings, _) => written(|buf| Echo::ping(client_type, number).emit(buf)),
            (Flood::InfoRequests, _) => written(|buf| InfoRequest { client_type, nonce }.emit(buf)),
            (Flood::ForgedJoins, _) => join(nonce, [7; 16], None),
            (Flood::TrueJoins, Some(cookie)) => join(nonce, cookie, Some("Taken")),
            (Flood::Sessions, Some(cookie)) => join(nonce, cookie, None),
            _ => written(|buf| Hello { client_type, nonce }.emit(buf)),
        }
    }

    fn listen(&mut self, socket: &UdpSocket, tally: &mut Tally) {
        let mut buf = [0; 2048];
        while let Ok(len) = socket.recv(&mut buf) {
            tally.answered += 1;
            self.received += len as u64;
            if let Ok(challenge) = ChallengeView::parse(&buf[..len]) {
                self.cookie = Some(challenge.cookie());
            }
            if let Ok(refuse) = RefuseView::parse(&buf[..len])
                && refuse.reason() == RefuseReason::BAD_COOKIE
            {
                self.cookie = None;
            }
        }
    }
}

fn written(emit: impl FnOnce(&mut [u8]) -> Result<usize, caves_wire::EmitError>) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let len = emit(&mut buf).expect("fits");
    buf.truncate(len);
    buf
}

fn join(nonce: Nonce, cookie: [u8; 16], name: Option<&str>) -> Vec<u8> {
    let mut block = [0; 64];
    let mut tlv = TlvWriter::new(&mut block);
    if let Some(name) = name {
        tlv.put(tag::NAME, name.as_bytes()).expect("fits");
    }
    let join = Join { client_type: ClientType::OFFICIAL, nonce, cookie, meta: tlv.finish() };
    written(|buf| join.emit(buf))
}

/// What the kernel says of a process: resident memory in KiB, and seconds of a processor.
fn process(pid: u32) -> (u64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    let kib = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let ticks: Vec<f64> = fields.split(' ').filter_map(|field| field.parse().ok()).collect();
    // Behind the state, which is no number: utime and stime are the fields 14 and 15 of all.
    (kib, (ticks[10] + ticks[11]) / 100.0)
}

/// The last line of a log: what was received, and what was dropped and why.
fn summary(server: &ServerProcess) -> String {
    let log = server.wait_for_log("stopped");
    log.lines().last().unwrap_or_default().to_owned()
}

/// A server without exceptions for anybody, not even for this machine.
fn server(listen: &str) -> ServerProcess {
    ServerProcess::spawn(&format!("[server]\nlisten = [\"{listen}\"]\n[limits]\nexempt = []\n"))
}

/// While the crowd floods, players come one after the other, each from an address of its own.
fn players_join_beside(
    crowd: &mut Crowd,
    flood: Flood,
    players: impl Iterator<Item = IpAddr>,
    pid: u32,
) {
    let server = crowd.server;
    let over = AtomicBool::new(false);
    let (kib_before, cpu_before) = process(pid);
    let mut waits = Vec::new();
    let tally = thread::scope(|scope| {
        let end = End(&over);
        let flooding = scope.spawn(|| crowd.flood(flood, &over));
        for (number, ip) in players.enumerate() {
            thread::sleep(Duration::from_millis(500));
            let mut player = Visitor::new(server, ip, &format!("{flood:?}-{number}"));
            let wait = player.until(PATIENCE, Visitor::is_in);
            waits.push(wait.unwrap_or_else(|| panic!("{flood:?}: never in, after {waits:?}")));
            player.until(PATIENCE, Visitor::is_playable).expect("the caves are there, too");
            player.leave();
        }
        drop(end);
        flooding.join().expect("no panic")
    });
    let (kib, cpu) = process(pid);
    waits.sort_unstable();
    println!(
        "{flood:?}: offered {:.0}/s, answered {:.0}/s, players in after {waits:?}, memory {kib_before} \
         -> {kib} KiB, processor {:.0} %",
        tally.offered as f64 / tally.seconds,
        tally.answered as f64 / tally.seconds,
        100.0 * (cpu - cpu_before) / tally.seconds,
    );
    // One that was unlucky with this machine is no news.
    assert!(waits[waits.len() - 2] < SOON, "{flood:?}: {waits:?}");
    let most = f64::from(TOTAL) * (tally.seconds + 1.0);
    assert!(tally.answered as f64 <= most, "{flood:?}: {tally:?}");
    crowd.assert_not_multiplied();
}

/// The crowd begins, and becomes known.
fn begin(crowd: &mut Crowd) -> Tally {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&over);
        let flooding = scope.spawn(|| crowd.flood(Flood::Hellos, &over));
        thread::sleep(ONSET);
        drop(end);
        flooding.join().expect("no panic")
    })
}

/// Memory that a server may take more than when it had just started: its tables, the budgets of
/// the sketch among them, and the caves around some players.
const MORE_KIB: u64 = 8 * 1024;

#[test]
fn players_join_within_two_seconds_beside_floods_from_ten_thousand_addresses() {
    let mut server = server("127.0.0.1:0");
    let pid = server.pid();
    let addr = server.addrs[0];
    let mut holder = Visitor::new(addr, [127, 200, 0, 1].into(), "Taken");
    holder.until(PATIENCE, Visitor::is_playable).expect("in the caves");
    let (kib_at_first, _) = process(pid);
    let mut crowd = Crowd::new(addr, |n| {
        let [.., a, b] = (n as u16).to_be_bytes();
        Ipv4Addr::new(127, 10 + (n % 90) as u8, a, b).into()
    });
    // The holder of the name plays all the time: a flood does not cost a player the session.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&over);
        let holds = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                holder.step();
            }
            holder
        });
        let onset = begin(&mut crowd);
        println!("onset: {onset:?}");
        let floods = [
            Flood::Hellos,
            Flood::Pings,
            Flood::InfoRequests,
            Flood::ForgedJoins,
            Flood::TrueJoins,
        ];
        for (network, flood) in (1..).zip(floods) {
            let ips = (1..=5).map(|n| Ipv4Addr::new(127, 200, network, n).into());
            players_join_beside(&mut crowd, flood, ips, pid);
        }
        drop(end);
        let mut holder = holds.join().expect("no panic");
        let joined = |event: &&ClientEvent| matches!(event, ClientEvent::Joined { .. });
        assert_eq!(holder.events.iter().filter(joined).count(), 1, "one session all the time");
        holder.leave();
    });
    let (kib, _) = process(pid);
    assert!(kib <= kib_at_first + MORE_KIB, "{kib_at_first} -> {kib} KiB");
    assert_eq!(server.terminate().code(), Some(0));
    println!("memory {kib_at_first} -> {kib} KiB; {}", summary(&server));
}

/// Whoever has many addresses can take all places with them; who comes then is told so.
#[test]
fn a_crowd_that_is_let_in_fills_the_places_and_a_player_is_told_soon() {
    let mut server = server("127.0.0.1:0");
    let addr = server.addrs[0];
    let mut crowd = Crowd::new(addr, |n| {
        let [.., a, b] = (n as u16).to_be_bytes();
        Ipv4Addr::new(127, 110 + (n % 80) as u8, a, b).into()
    });
    let over = AtomicBool::new(false);
    let (kib_at_first, _) = process(server.pid());
    thread::scope(|scope| {
        let end = End(&over);
        let flooding = scope.spawn(|| {
            let tally = crowd.flood(Flood::Sessions, &over);
            (crowd, tally)
        });
        thread::sleep(Duration::from_secs(4));
        let mut player = Visitor::new(addr, [127, 201, 0, 1].into(), "Late");
        let refused = |player: &Visitor| {
            let full = |event: &ClientEvent| {
                let full = RefuseReason::FULL;
                matches!(event, ClientEvent::Refused { reason, .. } if *reason == full)
            };
            player.events.iter().any(full) || player.is_in()
        };
        let told = player.until(PATIENCE, refused);
        drop(end);
        let (_, tally) = flooding.join().expect("no panic");
        println!("sessions: {tally:?}, told after {told:?}");
        assert!(told.is_some());
    });
    let (kib, _) = process(server.pid());
    assert!(kib <= kib_at_first + MORE_KIB, "{kib_at_first} -> {kib} KiB");
    assert_eq!(server.terminate().code(), Some(0));
    println!("memory {kib_at_first} -> {kib} KiB; {}", summary(&server));
}

/// Set inside the namespace.
const INSIDE: &str = "CAVES_INSIDE_NAMESPACE";

/// A network of its own has any address it likes; it is gone when its last process is.
#[test]
#[ignore = "needs the programs ip and unshare, and a kernel that lets us have a network namespace"]
fn players_join_within_two_seconds_beside_a_flood_from_ten_thousand_ipv6_networks() {
    if std::env::var_os(INSIDE).is_some() {
        flood_over_ipv6();
        return;
    }
    let this = std::env::current_exe().expect("this very program");
    let name = "players_join_within_two_seconds_beside_a_flood_from_ten_thousand_ipv6_networks";
    let script = format!(
        "set -e; ip link set lo up; ip -6 route add local 2001:db8::/32 dev lo; \
         echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind; \
         exec '{}' --ignored --exact --nocapture {name}",
        this.display()
    );
    // Root may have a namespace where others may not, and others may where they are root of it.
    let output = ["-rn", "-n"].into_iter().find_map(|how| {
        let unshare = |what| {
            let mut command = Command::new("unshare");
            command.args([how, "sh", "-c", what]).env(INSIDE, "1").stdin(Stdio::null());
            command.output().expect("unshare of util-linux")
        };
        unshare("ip link set lo up").status.success().then(|| unshare(&script))
    });
    let output = output.expect("a network namespace");
    let text = String::from_utf8_lossy(&output.stdout);
    // Its totals are no totals of this run.
    for line in text.lines().filter(|line| !line.starts_with("test result")) {
        println!("{line}");
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "it ran in there");
}

fn flood_over_ipv6() {
    let mut server = server("[::1]:0");
    let pid = server.pid();
    let (kib_at_first, _) = process(pid);
    let addr = server.addrs[0];
    // One subscriber's /48 has so many /64s and more.
    let mut crowd = Crowd::new(addr, |n| {
        Ipv6Addr::new(0x2001, 0xDB8, 0x8000, n as u16, 0, 0, 0, 1 + n as u16).into()
    });
    let players = |site: u16| {
        // Subscribers of their own.
        (1..=5)
            .map(move |n| IpAddr::from(Ipv6Addr::new(0x2001, 0xDB8, 10 * site + n, 0, 0, 0, 0, 1)))
    };
    // All of it is one newcomer, so there is no onset to wait for.
    players_join_beside(&mut crowd, Flood::Hellos, players(1), pid);
    players_join_beside(&mut crowd, Flood::ForgedJoins, players(2), pid);
    // As many subscribers, of one network each.
    let mut crowd =
        Crowd::new(addr, |n| Ipv6Addr::new(0x2001, 0xDB8, 1000 + n as u16, 0, 0, 0, 0, 1).into());
    begin(&mut crowd);
    players_join_beside(&mut crowd, Flood::Hellos, players(3), pid);
    players_join_beside(&mut crowd, Flood::ForgedJoins, players(4), pid);
    let (kib, _) = process(pid);
    assert!(kib <= kib_at_first + MORE_KIB, "{kib_at_first} -> {kib} KiB");
    assert_eq!(server.terminate().code(), Some(0));
    println!("memory {kib_at_first} -> {kib} KiB; {}", summary(&server));
}

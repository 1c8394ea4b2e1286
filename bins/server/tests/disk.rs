//! A disk without room under a real server: play goes on, and all is kept when there is room.

mod common;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use caves_wire::caves::Token;
use caves_world::{Command as Act, Direction};

use common::visitor::Visitor;
use common::{PATIENCE, ServerProcess, TempDir};

const ADA: Token = Token(0xADA0_0000_0001);

/// A file system of its own in memory, unmounted in the end.
struct Disk(TempDir);

impl Disk {
    fn new(kib: u32) -> Self {
        let dir = TempDir::new();
        std::fs::create_dir(dir.path().join("disk")).expect("a directory");
        let disk = Self(dir);
        disk.mount(&format!("size={kib}k"));
        disk
    }

    fn mount(&self, options: &str) {
        run("mount", &["-t", "tmpfs", "-o", options, "tmpfs"], &self.0.path().join("disk"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["--lazy"], &self.0.path().join("disk"));
    }
}

fn run(program: &str, args: &[&str], path: &Path) {
    let status = Command::new(program).args(args).arg(path).status();
    assert!(status.expect("it is there").success(), "{program} {args:?}");
}

fn start(dir: &TempDir) -> ServerProcess {
    let mut command = dir.program();
    command.args(["--set", "world.store=disk/caves.redb"]);
    ServerProcess::start(dir.clone(), command, 1)
}

fn enter(server: &ServerProcess) -> Visitor {
    let mut ada = Visitor::registered(server.addrs[0], Ipv4Addr::LOCALHOST.into(), ADA);
    let there = |ada: &Visitor| ada.client.mirror().me().is_some() && !ada.client.misses_chunks();
    ada.until(PATIENCE, there).expect("in the caves");
    ada
}

/// Digs and walks for some time; gives how many ticks came.
fn play(ada: &mut Visitor, seconds: u64) -> u32 {
    let first = ada.client.tick().expect("in the caves").get();
    let until = Instant::now() + Duration::from_secs(seconds);
    for turn in 0_u64.. {
        ada.step();
        if Instant::now() >= until {
            break;
        }
        let way = Direction::ALL[(turn / 40 % 2) as usize];
        if ada.client.session().queued().next().is_none() {
            let act = if turn % 3 == 0 { Act::Move(way) } else { Act::Dig(way) };
            // What finds no room is not done.
            let _ = ada.client.act(act);
        }
    }
    ada.client.tick().expect("still there").get() - first
}

#[test]
#[ignore = "mounts a tmpfs, which needs root"]
fn play_goes_on_while_the_disk_is_full_and_all_is_kept_afterwards() {
    let disk = Disk::new(200);
    let dir = &disk.0;
    let client = format!("[[client]]\nclient_type = 7\nname = \"Ada\"\ntoken = \"{:#x}\"\n", ADA.0);
    dir.file("config.toml", &format!("{}{client}", common::ONE_SOCKET));
    let mut server = start(dir);
    let mut ada = enter(&server);

    // Nothing is left: neither for a longer file nor for what the file has not used yet.
    let filler = dir.path().join("disk/filler");
    let full = std::fs::write(&filler, vec![0; 300 * 1024]).expect_err("it is full");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let ticks = play(&mut ada, 4);
    assert!(ticks >= 35, "{ticks} ticks in 4 s");
    let log = server.wait_for_log("cannot save");
    let line = log.lines().find(|line| line.contains("cannot save")).expect("a line");
    assert!(line.contains("unsaved_bytes=") && line.contains("No space left on device"), "{line}");

    std::fs::remove_file(&filler).expect("it is there");
    disk.mount("remount,size=8m");
    server.wait_for_log("saving works again");
    // What was under way is done.
    let now = Instant::now();
    ada.until(PATIENCE, |_| now.elapsed() > Duration::from_millis(700));
    let place = ada.client.mirror().me().expect("in the caves").pos;
    assert_eq!(server.terminate().code(), Some(0));
    let mut server = start(dir);
    let again = enter(&server);
    assert_eq!(again.client.mirror().me().expect("in the caves").pos, place);
    server.terminate();
}

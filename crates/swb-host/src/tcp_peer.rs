//! Whose process is at the other end of a connection over loopback.
//!
//! The kernel does not say who connected over TCP. But the other end is a socket of this machine: its number stands in
//! the kernel's list of connections, and whoever holds it has it among its descriptors. Looked at are only processes below
//! hosts; where there is no host, there is nobody to be told from a person.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::Pid;

use crate::lineage::{self, Above};

/// The host above whoever holds the other end of a connection that came `from` there `to` us.
pub fn above_tcp_peer(from: SocketAddr, to: SocketAddr) -> Above {
    let Ok(processes) = processes() else { return Above::Unclear };
    let hosts: HashMap<Pid, Above> =
        processes.iter().filter_map(|pid| Some((*pid, lineage::as_host(*pid)?))).collect();
    if hosts.is_empty() || !from.ip().to_canonical().is_loopback() {
        return Above::NoHost;
    }
    let Some(socket) = number_of(from, to) else { return Above::Unclear };
    let parents: HashMap<Pid, Pid> =
        processes.iter().filter_map(|pid| Some((*pid, lineage::parent(*pid)??))).collect();
    for process in &processes {
        if !is_below(*process, &hosts, &parents) {
            continue;
        }
        match holds(*process, socket) {
            Ok(false) => {}
            Ok(true) => return lineage::above(*process),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // It may be the one.
            Err(_) => return Above::Unclear,
        }
    }
    Above::NoHost
}

fn processes() -> io::Result<Vec<Pid>> {
    let names = std::fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| Pid::from_raw(name.parse().ok()?)).collect())
}

fn is_below(process: Pid, hosts: &HashMap<Pid, Above>, parents: &HashMap<Pid, Pid>) -> bool {
    let mut seen = HashSet::new();
    let mut at = process;
    while seen.insert(at) {
        if hosts.contains_key(&at) {
            return true;
        }
        match parents.get(&at) {
            Some(above) => at = *above,
            None => return false,
        }
    }
    true
}

/// Whether a process has this socket open.
fn holds(process: Pid, socket: u64) -> io::Result<bool> {
    let wanted = format!("socket:[{socket}]");
    for descriptor in std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()))? {
        if std::fs::read_link(descriptor?.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of the socket at the other end, from the kernel's lists. None if it is closed already.
fn number_of(from: SocketAddr, to: SocketAddr) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|list| {
        let list = std::fs::read_to_string(list).ok()?;
        list.lines().skip(1).find_map(|line| connection(line, from, to))
    })
}

fn connection(line: &str, from: SocketAddr, to: SocketAddr) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    if (local.ip(), local.port()) != (from.ip().to_canonical(), from.port())
        || (remote.ip(), remote.port()) != (to.ip().to_canonical(), to.port())
    {
        return None;
    }
    words.nth(6)?.parse().ok().filter(|number| *number != 0)
}

/// An address as the kernel lists it: words of four bytes in the order of the machine, in hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..ip.len() / 8)
        .map(|at| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let bytes: Vec<u8> = words?.concat();
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn own_number(stream: &TcpStream) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).unwrap();
        let link = link.to_str().unwrap();
        link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).unwrap().parse().unwrap()
    }

    #[test]
    fn the_socket_at_the_other_end_is_found_by_its_addresses() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let clients: Vec<TcpStream> =
                (0..3).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
            for client in &clients {
                let (from, to) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
                assert_eq!(number_of(from, to), Some(own_number(client)), "{listen}");
                let me = rustix::process::getpid();
                assert!(holds(me, own_number(client)).unwrap());
            }
            let nowhere = SocketAddr::new(listener.local_addr().unwrap().ip(), 1);
            assert_eq!(number_of(nowhere, listener.local_addr().unwrap()), None);
        }
        let me = rustix::process::getpid();
        assert!(!holds(me, 1).unwrap());
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let v4: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(address(&format!("{loopback:08X}:1F90")), Some(v4));
        let mapped = u32::from_ne_bytes([0, 0, 0xff, 0xff]);
        assert_eq!(address(&format!("{:08X}{:08X}{mapped:08X}{loopback:08X}:1F90", 0, 0)), Some(v4));
        for bad in ["", ":", "00:1", "zzzzzzzz:1F90", "0100007F", "0100007F:zz"] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }
}

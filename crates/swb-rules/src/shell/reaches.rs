//! Programs that reach beyond the files they are told to touch: networks, other users, other processes, the machine.

use super::concern::Concern;
use super::invocation::Risk;
use super::programs::lists;

/// Why a program reaches beyond files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    pub(super) concern: Concern,
    pub(super) risk: Risk,
    pub(super) reason: &'static str,
    pub(super) network: bool,
    pub(super) privilege: bool,
    pub(super) destructive: bool,
    pub(super) names: &'static str,
}

const fn reach(concern: Concern, risk: Risk, reason: &'static str, names: &'static str) -> Reach {
    Reach { concern, risk, reason, network: false, privilege: false, destructive: false, names }
}

/// Programs that reach beyond the files they are told to touch.
pub(super) const REACHES: &[Reach] = &[
    Reach {
        network: true,
        ..reach(
            Concern::Network,
            Risk::Medium,
            "reaches the network",
            "\
                aria2c curl dig ftp host http https httpie lftp lynx mail nc ncat netcat nmap nslookup \
                ping rclone rsync scp sendmail sftp socat telnet traceroute w3m wget whois xh ssh-copy-id \
                gh glab hub openssl",
        )
    },
    Reach {
        network: true,
        ..reach(
            Concern::Installs,
            Risk::High,
            "installs software",
            "\
                apk apt apt-get aptitude brew conda corepack dnf dpkg easy_install emerge flatpak gem \
                mamba nix nix-env nix-shell npx bunx pacman pip pip3 pipx port rpm rustup snap uv uvx yay \
                yum zypper composer bundle poetry asdf",
        )
    },
    Reach {
        privilege: true,
        ..reach(
            Concern::Privilege,
            Risk::High,
            "changes users or rights",
            "\
                chown chattr chfn chsh groupadd groupdel newgrp passwd setcap setfacl su useradd userdel \
                usermod visudo setpriv capsh",
        )
    },
    Reach {
        destructive: true,
        ..reach(
            Concern::Destroys,
            Risk::Critical,
            "destroys disks or file systems",
            "\
                badblocks blkdiscard cfdisk cryptsetup fdisk hdparm lvremove mkfs mkswap parted pvremove \
                sfdisk sgdisk vgremove wipefs zpool swapoff",
        )
    },
    Reach {
        destructive: true,
        ..reach(Concern::Destroys, Risk::High, "destroys files beyond recovery", "shred srm wipe")
    },
    Reach {
        privilege: true,
        ..reach(
            Concern::System,
            Risk::High,
            "changes how the machine runs",
            "\
                chroot halt ifconfig init insmod ip iptables launchctl loginctl modprobe mount nft \
                poweroff reboot rmmod service shutdown sysctl systemctl telinit ufw umount unshare nsenter \
                journalctl dmesg mknod losetup",
        )
    },
    reach(
        Concern::Outlasts,
        Risk::High,
        "makes something run later",
        "at atd batch cron crontab systemd-run",
    ),
    reach(
        Concern::Outlasts,
        Risk::Medium,
        "runs something beside this session",
        "screen tmux byobu disown dtach zellij script",
    ),
    reach(
        Concern::Processes,
        Risk::Medium,
        "ends or changes other processes",
        "kill killall pkill renice xkill fuser",
    ),
    reach(
        Concern::Processes,
        Risk::High,
        "looks into or controls other processes",
        "gdb lldb ltrace perf strace bpftrace",
    ),
    reach(
        Concern::Exposes,
        Risk::High,
        "works with keys and passwords",
        "\
                gpg gpg2 keyctl pass secret-tool security ssh-add ssh-agent ssh-keygen op age sops vault",
    ),
    reach(Concern::Exposes, Risk::Medium, "shows the environment, which may hold keys", "printenv"),
    Reach {
        network: true,
        ..reach(
            Concern::Services,
            Risk::High,
            "acts on services outside the working directory",
            "\
                ansible ansible-playbook aws az createdb docker docker-compose doctl dropdb flyctl fly \
                gcloud gsutil helm heroku kubectl minikube mongo mongosh mysql mysqldump netlify pg_dump \
                podman psql pulumi redis-cli terraform tofu vagrant vercel wrangler packer skopeo buildah",
        )
    },
];

/// How a program reaches beyond files, if it does.
pub(super) fn reach_of(name: &str) -> Option<&'static Reach> {
    let name = if name.starts_with("mkfs.") { "mkfs" } else { name };
    REACHES.iter().find(|reach| lists(reach.names, name))
}

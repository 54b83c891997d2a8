//! Paths that matter more than others: secrets that are not to be read, files that make something run later.
//!
//! A rule is a row of names, each a pattern, matched at the end of a path or, with `/**`, anywhere in it; a rule that
//! starts with `/` is matched at the top. Paths may hold patterns too: then the question is whether both could mean the
//! same name. Case is ignored, because some file systems do.

use super::concern::Concern;
use super::invocation::Risk;
use super::pattern::meets;

/// A file that other programs take orders from.
pub(super) struct Sensitive {
    rule: &'static str,
    pub(super) concern: Concern,
    pub(super) risk: Risk,
    pub(super) reason: &'static str,
}

const SECRETS: &str = "\
    .env .env.* credentials.json credentials.yaml credentials.yml secrets/** .ssh/** .aws/credentials \
    .aws/config .aws/sso/** application_default_credentials.json service-account*.json id_rsa id_dsa \
    id_ecdsa id_ed25519 .gnupg/** .netrc _netrc .git-credentials .pgpass .my.cnf .pypirc .htpasswd \
    .kube/config .docker/config.json .config/gh/hosts.yml .config/gcloud/** .azure/** .cargo/credentials \
    .cargo/credentials.toml .config/switchboard/** .local/state/switchboard/** switchboard/*.token \
    .local/share/keyrings/** .password-store/** .config/op/** .bash_history .zsh_history .python_history \
    .psql_history .mysql_history *.kdbx *.p12 *.pfx *.jks *.keystore master.key .mozilla/** \
    .config/google-chrome/** .config/chromium/** /etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers \
    /etc/sudoers.d/** /proc/*/environ /proc/*/mem /proc/*/task/*/environ /proc/*/task/*/mem /proc/*/task/*/root/** \
    /proc/*/task/*/cwd/** /proc/*/task/*/fd/** /proc/*/root/** /proc/*/cwd/** /proc/*/fd/** /proc/kcore \
    /dev/mem /dev/kmem /dev/sd* /dev/nvme* /dev/vd* /dev/mapper/** /etc/ssh/ssh_host_*";

/// Not secret although a rule above says so.
const OPEN: &str = "\
    .env.example .env.sample .env.template .env.dist .env.defaults .ssh/config .ssh/known_hosts .ssh/*.pub";

/// Outside every workspace, and nobody's: what the system and toolchains bring along for everyone to read.
const COMMON: &str = "\
    /usr/** /lib/** /lib32/** /lib64/** /bin/** /sbin/** /opt/** /nix/store/** /etc/os-release \
    /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/version .cargo/registry/** .cargo/git/** \
    .rustup/toolchains/** go/pkg/mod/** .m2/repository/** .gradle/caches/** .nvm/versions/** .pyenv/versions/**";

/// Harmless devices.
const DEVICES: &str = "\
    /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr /dev/tty \
    /dev/fd/*";

const fn sensitive(rule: &'static str, concern: Concern, risk: Risk, reason: &'static str) -> Sensitive {
    Sensitive { rule, concern, risk, reason }
}

/// Switchboard's own files: writing them is asked about in every mode.
pub(super) const OWN: &str = "changes Switchboard's own files";
const START: &str = "changes a file that a shell runs when it starts";
const LATER: &str = "changes a file that makes other programs run something later";
const SYSTEM: &str = "changes the system";

const SENSITIVE: &[Sensitive] = &[
    sensitive(".switchboard/**", Concern::Steers, Risk::High, OWN),
    sensitive(".config/switchboard/**", Concern::Governs, Risk::High, OWN),
    sensitive(".local/state/switchboard/**", Concern::Governs, Risk::High, OWN),
    sensitive(".git/hooks/**", Concern::Steers, Risk::High, LATER),
    sensitive(".git/config", Concern::Steers, Risk::High, LATER),
    sensitive(".git/info/attributes", Concern::Steers, Risk::High, LATER),
    sensitive(".git/**", Concern::Steers, Risk::High, "changes the repository behind git's back"),
    sensitive(".gitconfig", Concern::Steers, Risk::High, LATER),
    sensitive(".config/git/**", Concern::Steers, Risk::High, LATER),
    sensitive(".husky/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".envrc", Concern::Steers, Risk::High, LATER),
    sensitive(".vscode/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".idea/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".zed/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".devcontainer/**", Concern::Steers, Risk::Medium, LATER),
    // Other agents take hooks and servers from these.
    sensitive(".claude/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".codex/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".cursor/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".gemini/**", Concern::Steers, Risk::Medium, LATER),
    sensitive(".mcp.json", Concern::Steers, Risk::Medium, LATER),
    sensitive(".config/autostart/**", Concern::Steers, Risk::High, LATER),
    sensitive(".config/systemd/**", Concern::Steers, Risk::High, LATER),
    sensitive("Library/LaunchAgents/**", Concern::Steers, Risk::High, LATER),
    sensitive(".bashrc", Concern::Steers, Risk::High, START),
    sensitive(".bash_profile", Concern::Steers, Risk::High, START),
    sensitive(".bash_login", Concern::Steers, Risk::High, START),
    sensitive(".bash_logout", Concern::Steers, Risk::High, START),
    sensitive(".bash_aliases", Concern::Steers, Risk::High, START),
    sensitive(".profile", Concern::Steers, Risk::High, START),
    sensitive(".zshrc", Concern::Steers, Risk::High, START),
    sensitive(".zshenv", Concern::Steers, Risk::High, START),
    sensitive(".zprofile", Concern::Steers, Risk::High, START),
    sensitive(".zlogin", Concern::Steers, Risk::High, START),
    sensitive(".inputrc", Concern::Steers, Risk::High, START),
    sensitive(".config/fish/**", Concern::Steers, Risk::High, START),
    sensitive(".ssh/**", Concern::Privilege, Risk::High, "changes who may log in, or as whom"),
    sensitive(".gnupg/**", Concern::Privilege, Risk::High, "changes keys"),
    sensitive("/etc/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/boot/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/bin/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/sbin/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/lib*/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/usr/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/sys/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/proc/**", Concern::System, Risk::Critical, SYSTEM),
    sensitive("/dev/tcp/**", Concern::Network, Risk::High, "sends to the network"),
    sensitive("/dev/udp/**", Concern::Network, Risk::High, "sends to the network"),
    sensitive("/dev/**", Concern::Destroys, Risk::Critical, "writes to a device"),
];

/// Whether reading a path shows a secret: surely, or perhaps because the path is a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    Open,
    Perhaps,
    Secret,
}

/// How secret a path is.
pub(super) fn secrecy(parts: &[String], pattern: bool) -> Secrecy {
    if !pattern && (any(OPEN, parts) || is_device(parts)) {
        return Secrecy::Open;
    }
    match (any(SECRETS, parts), pattern) {
        (false, _) => Secrecy::Open,
        (true, true) => Secrecy::Perhaps,
        (true, false) => Secrecy::Secret,
    }
}

/// Why writing a path is asked about wherever it lies.
pub(super) fn sensitive_write(parts: &[String]) -> Option<&'static Sensitive> {
    SENSITIVE.iter().find(|sensitive| matches(sensitive.rule, parts))
}

/// Reading or writing it touches nothing.
pub(super) fn is_device(parts: &[String]) -> bool {
    any(DEVICES, parts)
}

/// Lies outside every workspace and is meant to be read by everyone.
pub(super) fn is_common(parts: &[String]) -> bool {
    any(COMMON, parts) || is_device(parts)
}

/// A socket in disguise.
pub(super) fn is_socket(parts: &[String]) -> bool {
    any("/dev/tcp/** /dev/udp/**", parts)
}

fn any(rules: &str, parts: &[String]) -> bool {
    rules.split_ascii_whitespace().any(|rule| matches(rule, parts))
}

fn matches(rule: &str, parts: &[String]) -> bool {
    let (rule, from_top) = rule.strip_prefix('/').map_or((rule, false), |rule| (rule, true));
    let (rule, anywhere) = rule.strip_suffix("/**").map_or((rule, false), |rule| (rule, true));
    let length = rule.split('/').count();
    let meets_at = |at: usize| {
        parts
            .get(at..at + length)
            .is_some_and(|part| part.iter().zip(rule.split('/')).all(|(part, name)| meets(part, name)))
    };
    let last = parts.len().checked_sub(length);
    match (from_top, anywhere, last) {
        (_, _, None) => false,
        (true, true, _) => meets_at(0),
        (true, false, Some(last)) => last == 0 && meets_at(0),
        (false, true, Some(last)) => (0..=last).any(meets_at),
        (false, false, Some(last)) => meets_at(last),
    }
}

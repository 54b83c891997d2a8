//! Paths that matter more than others: secrets that are not to be read, files that make something run later.
//!
//! A rule is a row of names, each a pattern, matched at the end of a path or, with `/**`, anywhere in it; a rule that
//! starts with `/` is matched at the top. Paths may hold patterns too: then the question is whether both could mean the
//! same name. Case is ignored, because some file systems do.

use super::invocation::Risk;
use super::pattern::meets;

/// A file that other programs take orders from.
pub(super) struct Sensitive {
    rule: &'static str,
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
    /etc/sudoers.d/** /proc/*/environ /proc/*/mem /proc/*/root/** /proc/*/cwd/** /proc/*/fd/** /proc/kcore \
    /dev/mem /dev/kmem /dev/sd* /dev/nvme* /dev/vd* /dev/mapper/** /etc/ssh/ssh_host_*";

/// Not secret although a rule above says so.
const OPEN: &str = "\
    .env.example .env.sample .env.template .env.dist .env.defaults .ssh/config .ssh/known_hosts .ssh/*.pub";

/// Harmless devices.
const DEVICES: &str = "\
    /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr /dev/tty \
    /dev/fd/*";

const fn sensitive(rule: &'static str, risk: Risk, reason: &'static str) -> Sensitive {
    Sensitive { rule, risk, reason }
}

/// Switchboard's own files: writing them is asked about in every mode.
pub(super) const OWN: &str = "changes Switchboard's own files";
const START: &str = "changes a file that a shell runs when it starts";
const LATER: &str = "changes a file that makes other programs run something later";
const SYSTEM: &str = "changes the system";

const SENSITIVE: &[Sensitive] = &[
    sensitive(".switchboard/**", Risk::High, OWN),
    sensitive(".config/switchboard/**", Risk::High, OWN),
    sensitive(".local/state/switchboard/**", Risk::High, OWN),
    sensitive(".git/hooks/**", Risk::High, LATER),
    sensitive(".git/config", Risk::High, LATER),
    sensitive(".git/info/attributes", Risk::High, LATER),
    sensitive(".git", Risk::High, "changes the repository behind git's back"),
    sensitive(".gitconfig", Risk::High, LATER),
    sensitive(".config/git/**", Risk::High, LATER),
    sensitive(".husky/**", Risk::Medium, LATER),
    sensitive(".envrc", Risk::High, LATER),
    sensitive(".vscode/tasks.json", Risk::Medium, LATER),
    sensitive(".config/autostart/**", Risk::High, LATER),
    sensitive(".config/systemd/**", Risk::High, LATER),
    sensitive("Library/LaunchAgents/**", Risk::High, LATER),
    sensitive(".bashrc", Risk::High, START),
    sensitive(".bash_profile", Risk::High, START),
    sensitive(".bash_login", Risk::High, START),
    sensitive(".bash_logout", Risk::High, START),
    sensitive(".bash_aliases", Risk::High, START),
    sensitive(".profile", Risk::High, START),
    sensitive(".zshrc", Risk::High, START),
    sensitive(".zshenv", Risk::High, START),
    sensitive(".zprofile", Risk::High, START),
    sensitive(".zlogin", Risk::High, START),
    sensitive(".inputrc", Risk::High, START),
    sensitive(".config/fish/**", Risk::High, START),
    sensitive(".ssh/**", Risk::High, "changes who may log in, or as whom"),
    sensitive(".gnupg/**", Risk::High, "changes keys"),
    sensitive("/etc/**", Risk::Critical, SYSTEM),
    sensitive("/boot/**", Risk::Critical, SYSTEM),
    sensitive("/bin/**", Risk::Critical, SYSTEM),
    sensitive("/sbin/**", Risk::Critical, SYSTEM),
    sensitive("/lib*/**", Risk::Critical, SYSTEM),
    sensitive("/usr/**", Risk::Critical, SYSTEM),
    sensitive("/sys/**", Risk::Critical, SYSTEM),
    sensitive("/proc/**", Risk::Critical, SYSTEM),
    sensitive("/dev/tcp/**", Risk::High, "sends to the network"),
    sensitive("/dev/udp/**", Risk::High, "sends to the network"),
    sensitive("/dev/**", Risk::Critical, "writes to a device"),
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

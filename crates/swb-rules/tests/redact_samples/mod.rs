//! Made-up secrets, put together at run time so that no scanner of repositories takes this file for a leak.

/// A secret, the text around it, and the category it belongs to. `{}` is where the secret stands.
pub(crate) struct Sample {
    pub(crate) secret: String,
    pub(crate) around: &'static str,
    #[allow(dead_code, reason = "not every test that shares this asks for it")]
    pub(crate) category: &'static str,
}

/// `length` characters that look random and are not.
pub(crate) fn noise(alphabet: &str, length: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    (0..length).map(|at| letters[(at * at * 7 + at * 13 + 5) % letters.len()]).collect()
}

const ALNUM: &str = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xYz0CfIlOoqswy";
const UPPER: &str = "QW3RT5YUI7OPA2SDF4GHJ6KLZ8XCV9BNM";
const NAME: &str = "aB3-dE5_gH7jK9mN1pQ2rS4tU6vW8xYz";
const BASE64: &str = "aB3/dE5+gH7jK9mN1pQ2rS4tU6vW8xYz";
const HEX: &str = "0f1e2d3c4b5a6978";

fn sample(prefix: &str, body: String, around: &'static str, category: &'static str) -> Sample {
    Sample { secret: format!("{prefix}{body}"), around, category }
}

/// A private key block.
pub(crate) fn pem(label: &str, fields: &str, newline: &str) -> String {
    let body: Vec<String> = (0..6).map(|line| noise(BASE64, if line == 5 { 23 } else { 64 })).collect();
    format!("-----BEGIN {label}-----{newline}{fields}{}{newline}-----END {label}-----", body.join(newline))
}

/// One of each.
pub(crate) fn samples() -> Vec<Sample> {
    let jwt = format!("eyJ{}.eyJ{}.{}", noise(ALNUM, 33), noise(NAME, 120), noise(NAME, 43));
    let jwe = format!("eyJ{}..{}.{}.{}", noise(ALNUM, 40), noise(NAME, 16), noise(NAME, 80), noise(NAME, 22))
        .replace("..", &format!(".{}.", noise(NAME, 60)));
    vec![
        sample("sk-proj-", noise(NAME, 156), "export OPENAI_API_KEY={}", "API_KEY"),
        sample("sk-proj-", noise(NAME, 40), "key is {} ok", "API_KEY"),
        sample("sk-", noise(ALNUM, 48), "key is {} ok", "API_KEY"),
        sample("sk-", noise(ALNUM, 42), "key is {}\n", "API_KEY"),
        sample("sk-ant-api03-", noise(NAME, 95), "[{}]", "API_KEY"),
        sample("sk-or-v1-", noise(HEX, 64), "{}", "API_KEY"),
        sample("sk_live_", noise(ALNUM, 24), "stripe {}", "API_KEY"),
        sample("AIza", noise(NAME, 35), "https://maps/api?key={}&x=1", "API_KEY"),
        sample("hf_", noise(ALNUM, 34), "HF={}", "API_KEY"),
        sample("npm_", noise(ALNUM, 36), "//registry/:_auth={}", "API_KEY"),
        sample("AKIA", noise(UPPER, 16), "id {}, ok", "AWS_KEY"),
        sample("ASIA", noise(UPPER, 16), "id {}, ok", "AWS_KEY"),
        sample("", noise(BASE64, 40), "aws_secret_access_key = {}", "AWS_KEY"),
        sample("", noise(BASE64, 40), "AWS_SECRET_ACCESS_KEY={}", "AWS_KEY"),
        sample("", noise(BASE64, 40), "\"SecretAccessKey\": \"{}\"", "AWS_KEY"),
        sample("ghp_", noise(ALNUM, 36), "token: {}", "SECRET"),
        sample("ghp_", noise(ALNUM, 36), "see {} there", "FORGE_TOKEN"),
        sample("gho_", noise(ALNUM, 36), "see {}.", "FORGE_TOKEN"),
        sample("ghu_", noise(ALNUM, 36), "({})", "FORGE_TOKEN"),
        sample("ghs_", noise(ALNUM, 36), "https://x-access-token:{}@github.com/a/b", "URL_PASSWORD"),
        sample("github_pat_", noise(ALNUM, 22) + "_" + &noise(ALNUM, 59), "see {} there", "FORGE_TOKEN"),
        sample("glpat-", noise(NAME, 20), "see {} there", "FORGE_TOKEN"),
        sample(
            "xoxb-",
            "123456789012-1234567890123-".to_owned() + &noise(ALNUM, 24),
            "slack {}",
            "CHAT_TOKEN",
        ),
        sample("", jwt, "jwt {} end", "JWT"),
        sample("", jwe, "jwe {} end", "JWT"),
        sample("", noise(ALNUM, 40), "Authorization: Bearer {}", "AUTHORIZATION"),
        sample("", "mytoken".to_owned(), "curl -H 'authorization: bearer {}' x", "AUTHORIZATION"),
        sample("", noise(ALNUM, 30), "{\"Authorization\": \"Bearer {}\"}", "AUTHORIZATION"),
        sample("", noise(ALNUM, 24), "sent Bearer {} to x", "AUTHORIZATION"),
        sample("", "dXNlcjpwYXNzd29yZA==".to_owned(), "Authorization: Basic {}", "AUTHORIZATION"),
        sample("", "p4ss:w/rd".replace('/', "-"), "postgres://app:{}@db:5432/main", "URL_PASSWORD"),
        sample("", "hunter2".to_owned(), "mongodb+srv://app:{}@cluster0.example.net/x?y=1", "URL_PASSWORD"),
        sample("", "p@ss".to_owned(), "redis://:{}@cache", "URL_PASSWORD"),
        sample("", "hunter2".to_owned(), "https://ann:{}@example.org/", "URL_PASSWORD"),
        sample("", noise(ALNUM, 20), "api-key: {}", "API_KEY"),
        sample("", noise(ALNUM, 20), "X-Api-Key: {}\r\n", "API_KEY"),
        sample("", noise(ALNUM, 20), "{\"api_key\":\"{}\",\"x\":1}", "API_KEY"),
        sample("", noise(ALNUM, 20), "{\\\"api_key\\\":\\\"{}\\\",\\\"x\\\":1}", "API_KEY"),
        sample("", noise(ALNUM, 20), "apikey={}&page=2", "API_KEY"),
        sample("", noise(HEX, 32), "api_token = '{}'", "API_KEY"),
        sample("", noise(HEX, 32), "client_secret={}", "SECRET"),
        sample("", noise(ALNUM, 32), "tool --token {} run", "SECRET"),
        sample("", "hunter2".to_owned(), "password={}", "PASSWORD"),
        sample("", "hunter".to_owned(), "mysql --password={} -u root", "PASSWORD"),
        sample("", "correct horse battery".to_owned(), "password = \"{}\"", "PASSWORD"),
        sample("", "tr0ub4dor&3".replace('&', "+"), "  password: {}\n  host: x", "PASSWORD"),
        sample("", "s3cr\\\"et".to_owned(), "{\"password\":\"{}\"}", "PASSWORD"),
        sample("", "hunter2!".to_owned(), "PGPASSWORD={} psql", "PASSWORD"),
        sample("", "hunter2!".to_owned(), "DB_PASSWORD_PROD={}", "PASSWORD"),
        Sample {
            secret: pem("RSA PRIVATE KEY", "", "\n"),
            around: "key:\n{}\ndone",
            category: "PRIVATE_KEY",
        },
        Sample { secret: pem("PRIVATE KEY", "", "\r\n"), around: "{}", category: "PRIVATE_KEY" },
        Sample {
            secret: pem("OPENSSH PRIVATE KEY", "", "\n"),
            around: "cat id\n{}\n$ ",
            category: "PRIVATE_KEY",
        },
        Sample { secret: pem("ENCRYPTED PRIVATE KEY", "", "\n"), around: "{}\n", category: "PRIVATE_KEY" },
        Sample {
            secret: pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n", "\n"),
            around: "x {}",
            category: "PRIVATE_KEY",
        },
        Sample {
            secret: pem("EC PRIVATE KEY", "", "\\n"),
            around: "{\"private\": \"{}\\n\"}",
            category: "PRIVATE_KEY",
        },
        Sample { secret: pem("PRIVATE KEY", "", " "), around: "KEY {} end", category: "PRIVATE_KEY" },
        Sample {
            secret: pem("PGP PRIVATE KEY BLOCK", "Version: x\n\n", "\n"),
            around: "{}",
            category: "PRIVATE_KEY",
        },
    ]
}

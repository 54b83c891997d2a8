use super::*;

fn with_file(text: &str) -> Result<Layers, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    Layers::default().file(&path)
}

fn env(pairs: &[(&str, &str)]) -> std::vec::IntoIter<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

#[test]
fn the_later_layer_wins_and_each_value_knows_its_origin() {
    let layers = with_file("[log]\nlevel = \"warn\"\nkeep = 2\n").unwrap();
    let layers =
        layers.env(env(&[("SWB_LOG_LEVEL", "debug"), ("SWB_HOME", "/x"), ("PATH", "/bin")])).unwrap();
    let layers = layers.flags(&["bus.max_in_flight=7".to_owned()]).unwrap();
    let config = layers.finish().unwrap();
    assert_eq!((config.log.level.as_str(), config.log.keep, config.bus.max_in_flight), ("debug", 2, 7));
    let origin = |key: &str| layers.settings().into_iter().find(|setting| setting.key == key).unwrap().origin;
    assert_eq!(origin("log.level"), Origin::Env { name: "SWB_LOG_LEVEL".into() });
    assert!(matches!(origin("log.keep"), Origin::File { .. }));
    assert_eq!(origin("bus.max_in_flight"), Origin::Flag);
    assert_eq!(origin("cli.color"), Origin::Default);
    assert!(layers.warnings().is_empty(), "{:?}", layers.warnings());
}

#[test]
fn nothing_said_is_what_spelling_everything_out_gives() {
    let layers = Layers::default().env(env(&[("SWB_HOME", "/x"), ("PATH", "/bin")])).unwrap();
    assert_eq!(layers.finish().unwrap(), layers.spelled_out().unwrap());
    let settings = layers.settings();
    assert!(settings.len() > 20 && settings.iter().all(|setting| setting.origin == Origin::Default));
    assert!(settings.is_sorted_by(|one, next| one.key < next.key));
}

#[test]
fn unknown_keys_are_reported_by_their_path_and_ignored() {
    let layers = with_file("colour = 1\n[log]\nlevle = \"warn\"\n[future.part]\nx = 1\n").unwrap();
    let layers = layers.env(env(&[("SWB_LOG_LEVLE", "x")])).unwrap();
    let keys: Vec<_> = layers.warnings().iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys, ["colour", "future.part.x", "log.levle", "SWB_LOG_LEVLE"]);
    assert_eq!(layers.finish().unwrap(), Config::default());
}

#[test]
fn a_wrong_value_names_its_key_and_its_place() {
    for (text, key) in [
        ("[log]\nkeep = \"two\"", "log.keep"),
        ("[bus]\nreplay_bytes = -1", "bus.replay_bytes"),
        ("log = 3", ""),
    ] {
        match with_file(text) {
            Err(ConfigError::Value { key: found, origin: Origin::File { .. }, .. }) => {
                assert_eq!(found, key);
            }
            Err(other) => panic!("{other}"),
            Ok(layers) => {
                assert_eq!(layers.warnings()[0].key, "log", "a scalar in the place of a table means nothing");
            }
        }
    }
    assert!(matches!(with_file("[log\n"), Err(ConfigError::Syntax { .. })));
    let level = with_file("[log]\nlevel = \"loud\"").unwrap().finish().unwrap_err().to_string();
    assert!(level.contains("log.level") && level.contains("config.toml"), "{level}");
    assert!(
        Layers::default()
            .env(env(&[("SWB_LOG_KEEP", "many")]))
            .unwrap_err()
            .to_string()
            .contains("SWB_LOG_KEEP")
    );
    assert!(Layers::default().flags(&["nonsense".to_owned()]).is_err());
    assert!(Layers::default().flags(&["no.such=1".to_owned()]).is_err());
}

#[test]
fn entries_of_ones_own_are_read_and_what_they_cannot_have_is_reported() {
    let layers = with_file(
        "[providers.mine]\nbase_url = \"http://box/v1\"\nbase_ulr = \"x\"\n\
         [models.\"mine/qwen2.5\"]\ncontext_window = 32768\ninput_price = 3\nprice = 1\n",
    )
    .unwrap();
    let layers = layers.flags(&["models.\"mine/qwen2.5\".output_price=1.5".to_owned()]).unwrap();
    let keys: Vec<_> = layers.warnings().iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys, ["models.\"mine/qwen2.5\".price", "providers.mine.base_ulr"]);
    let config = layers.finish().unwrap();
    assert_eq!(config.providers["mine"].base_url.as_deref(), Some("http://box/v1"));
    let model = &config.models["mine/qwen2.5"];
    assert_eq!(
        (model.context_window, model.input_price, model.output_price),
        (Some(32768), Some(3.0), Some(1.5))
    );
    for (text, part) in [
        ("[models.m]\ninput_price = -1", "not negative"),
        ("[models.m]\ninput_price = nan", "not negative"),
        ("[models.m]\nimages = 1", "boolean"),
        ("[providers.p]\ndialect = \"french\"", "gemini"),
        ("[providers.p]\nbase_url = \"box\"", "http://"),
        ("[providers.p]\nkey_env = \"sk-123-456\"", "not a key"),
    ] {
        let error = with_file(text).and_then(|layers| layers.finish()).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("sk-123"), "{text}: {error}");
    }
}

#[test]
fn a_project_cannot_say_where_keys_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[providers.anthropic]\nbase_url = \"http://evil/v1\"\n[log]\nkeep = 3\n").unwrap();
    let layers = Layers::default().project_file(&path, |_| true).unwrap();
    let config = layers.finish().unwrap();
    assert!(config.providers.is_empty());
    assert_eq!(config.log.keep, 3);
    assert_eq!(layers.warnings()[0].problem, Problem::NotForProjects);
    assert!(layers.warnings()[0].to_string().contains("providers.anthropic.base_url"));
}

proptest::proptest! {
    #[test]
    fn any_file_is_taken_or_refused_without_a_panic(text in "(\\[(log|bus|x)\\]\n)?([a-z.]{1,12} ?= ?(-?[0-9]{1,22}|\"[a-z]{0,5}\"|true|\\[\\])\n){0,6}\\PC{0,20}") {
        if let Ok(layers) = with_file(&text) {
            let _ = layers.finish();
        }
    }
}

#[test]
fn a_missing_file_says_nothing() {
    assert_eq!(
        Layers::default().file(Path::new("/nowhere/config.toml")).unwrap().finish().unwrap(),
        Config::default()
    );
}

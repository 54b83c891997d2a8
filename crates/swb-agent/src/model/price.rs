//! What tokens cost. A price that is not known is never taken for nothing.

use swb_proto::agent::TurnUsage;

use super::settings::Prices;

impl Prices {
    /// Of a model that costs nothing.
    pub(crate) const FREE: Prices =
        Prices { input: Some(0.0), output: Some(0.0), cache_read: Some(0.0), cache_write: Some(0.0) };

    /// Whether any price is known.
    pub(crate) fn is_known(&self) -> bool {
        *self != Prices::default()
    }

    /// What this has cost, if there is a price for every kind of token in it.
    pub(crate) fn cost(&self, usage: &TurnUsage) -> Option<f64> {
        let kinds = [
            (usage.input_tokens, self.input),
            (usage.output_tokens, self.output),
            (usage.cache_read_input_tokens, self.cache_read),
            (usage.cache_creation_input_tokens, self.cache_write),
        ];
        kinds.into_iter().filter(|(tokens, _)| *tokens > 0).try_fold(0.0, |sum, (tokens, price)| {
            #[expect(clippy::cast_precision_loss, reason = "nobody has used 2^52 tokens")]
            let millions = tokens as f64 / 1e6;
            Some(sum + millions * price?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, cache_read_input_tokens: u64) -> TurnUsage {
        TurnUsage { input_tokens, output_tokens: 1000, cache_read_input_tokens, ..TurnUsage::default() }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let prices =
            Prices { input: Some(3.0), output: Some(15.0), cache_read: Some(0.3), cache_write: Some(3.75) };
        let used = TurnUsage { cache_creation_input_tokens: 1_000_000, ..usage(2_000_000, 1_000_000) };
        assert_eq!(prices.cost(&used), Some(6.0 + 0.015 + 0.3 + 3.75));
    }

    #[test]
    fn a_cost_with_an_unknown_price_in_it_is_unknown() {
        let prices = Prices { input: Some(3.0), output: Some(15.0), ..Prices::default() };
        assert_eq!(prices.cost(&usage(0, 0)), Some(0.015));
        assert_eq!(prices.cost(&usage(1, 1)), None);
        assert_eq!(Prices::default().cost(&usage(1, 0)), None);
        assert_eq!(Prices::default().cost(&TurnUsage::default()), Some(0.0), "nothing used costs nothing");
        assert_eq!(Prices::FREE.cost(&usage(5, 5)), Some(0.0));
    }
}

//! Lists with weights, as in `Accept` and `Accept-Language` (RFC 9110, section 12.4.2).

/// Items and their weights in thousandths, in the order of the list; what is malformed weighs nothing.
pub fn weighted(list: &str) -> impl Iterator<Item = (&str, u16)> {
    list.split(',').map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|parameter| parameter.strip_prefix("q="));
        (name, weight.map_or(1000, thousandths))
    })
}

fn thousandths(text: &str) -> u16 {
    match text.parse::<f32>() {
        Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0).round() as u16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_from_nothing_to_all() {
        let found: Vec<_> =
            weighted("a, b;q=0.3 ,c; level=1; q=1.000,d;q=7,e;q=x,f;q=0,g;q=NaN,h;q=-1").collect();
        let wanted = [
            ("a", 1000),
            ("b", 300),
            ("c", 1000),
            ("d", 0),
            ("e", 0),
            ("f", 0),
            ("g", 0),
            ("h", 0),
        ];
        assert_eq!(found, wanted);
        assert_eq!(weighted("").collect::<Vec<_>>(), [("", 1000)]);
    }
}

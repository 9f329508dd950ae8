//! A small picture of how an Application fares, for pages of others.

/// What a badge says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Badge {
    /// Health of the Application.
    pub(crate) health: String,
    /// Whether it is as it is wanted.
    pub(crate) sync: String,
    /// Its revision; nothing is told of it where it is empty.
    pub(crate) revision: String,
    /// Its name; nothing is told of it where it is empty.
    pub(crate) name: String,
    /// How wide it is at least.
    pub(crate) width: Option<u32>,
}

/// How wide a letter is about, in pixels.
const LETTER: usize = 7;
/// Longest text of one part.
const LONGEST: usize = 80;

// === impl Badge ===

impl Badge {
    /// A badge that says one thing and nothing else.
    pub(crate) fn word(word: &str) -> Badge {
        Badge { health: word.to_owned(), ..Badge::default() }
    }

    /// As SVG. It says its colours as attributes: where it is shown, no style of its own counts.
    pub(crate) fn svg(&self) -> String {
        let mut parts: Vec<(&str, &str)> = vec![(&self.health, colour(&self.health))];
        if !self.sync.is_empty() {
            parts.push((&self.sync, colour(&self.sync)));
        }
        if !self.revision.is_empty() {
            parts.push((&self.revision, GREY));
        }
        let widths: Vec<usize> = parts.iter().map(|(text, _)| width(text)).collect();
        let own: usize = widths.iter().sum();
        let total = own.max(usize::try_from(self.width.unwrap_or(0)).unwrap_or(0)).min(4000);
        let titled = if self.name.is_empty() { 0 } else { 20 };
        let height = 20 + titled;
        let mut drawn = String::new();
        if titled > 0 {
            drawn.push_str(&format!("<rect width=\"{total}\" height=\"20\" fill=\"{DARK}\"/>"));
            drawn.push_str(&label(&self.name, total / 2, 14));
        }
        let mut left = 0;
        for (at, ((text, fill), wide)) in parts.iter().zip(&widths).enumerate() {
            // The last part takes what is left.
            let wide = if at + 1 == parts.len() { total - left } else { *wide };
            drawn.push_str(&format!(
                "<rect x=\"{left}\" y=\"{titled}\" width=\"{wide}\" height=\"20\" fill=\"{fill}\"/>"
            ));
            drawn.push_str(&label(text, left + wide / 2, titled + 14));
            left += wide;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"{height}\" role=\"img\">\
             <title>{}</title>{drawn}</svg>",
            escaped(&parts.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(", "))
        )
    }
}

const GREY: &str = "#5c6b7a";
const DARK: &str = "#33414e";

fn colour(word: &str) -> &'static str {
    match word {
        "Healthy" | "Synced" => "#12813f",
        "Progressing" => "#0b6fb8",
        "Suspended" => "#6b4fa0",
        "Degraded" => "#c0392b",
        "OutOfSync" | "Missing" => "#a85b00",
        _ => GREY,
    }
}

fn width(text: &str) -> usize {
    text.chars().count().min(LONGEST) * LETTER + 16
}

fn label(text: &str, x: usize, y: usize) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" fill=\"#ffffff\" text-anchor=\"middle\" font-size=\"11\" \
         font-family=\"Verdana,DejaVu Sans,sans-serif\">{}</text>",
        escaped(text)
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(LONGEST).filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_says_health_sync_and_revision() {
        let badge = Badge {
            health: "Healthy".to_owned(),
            sync: "Synced".to_owned(),
            revision: "0123456".to_owned(),
            name: "web".to_owned(),
            width: Some(400),
        };
        let svg = badge.svg();
        for part in
            [">Healthy<", ">Synced<", ">0123456<", ">web<", "width=\"400\"", "height=\"40\"", "#12813f"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(Badge::word("Not Found").svg().contains("height=\"20\""));
    }

    #[test]
    fn no_text_gets_out_of_its_place() {
        let badge = Badge { revision: "<script>\"&\n".to_owned(), ..Badge::word("x") };
        let svg = badge.svg();
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;&quot;&amp;<"), "{svg}");
        assert!(Badge::word(&"x".repeat(10_000)).svg().len() < 1000);
    }
}

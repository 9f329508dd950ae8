//! What a template uses, without executing it.

use crate::ast::{Branch, Expr, Operand, Pipe, Stmt};
use crate::template::Template;

impl Template {
    /// Fields of the data that the template reads by name, each once, in the order of their use: `a` for `{{.a.b}}`
    /// and for `{{$.a}}`. Inside `range`, `with` and named templates a dot is another value and is left out.
    pub fn root_fields(&self) -> Vec<String> {
        let mut uses = Uses::default();
        if let Some(root) = self.root() {
            uses.statements(&root.body, true);
        }
        uses.fields
    }

    /// Chains of fields of the data that every execution prints as they are or as a text made of them, each once, in the
    /// order of their use: `a` and `b` for `{{.a.b | lower}}`.
    ///
    /// What is inside `if`, `with`, `range` and named templates may not come to be executed, and what is handed to
    /// functions that look at lists and maps may be empty; both are left out. So is everything where the template
    /// changes maps.
    pub fn printed_fields(&self) -> Vec<Vec<String>> {
        let mut chains: Vec<Vec<String>> = Vec::new();
        if self.changes_maps() {
            return chains;
        }
        for statement in self.root().into_iter().flat_map(|root| &root.body) {
            let Stmt::Action(pipe) = statement else { continue };
            let Some(chain) = printed(pipe) else { continue };
            let chain: Vec<String> = chain.iter().map(ToString::to_string).collect();
            if !chains.contains(&chain) {
                chains.push(chain);
            }
        }
        chains
    }

    /// Functions that the template calls, each once, in the order of their use.
    pub fn functions(&self) -> Vec<&'static str> {
        let mut uses = Uses::default();
        for tree in self.trees() {
            uses.statements(&tree.body, false);
        }
        uses.functions
    }

    /// Whether the template calls a function that changes maps in place. Only then can it change the data it is
    /// executed on; see [`Map::detached`](crate::Map::detached).
    pub fn changes_maps(&self) -> bool {
        self.functions().iter().any(|name| CHANGING.contains(name))
    }
}

/// Functions that change the first map they are given.
const CHANGING: [&str; 6] = ["set", "unset", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite"];

/// Functions that make a text of a text.
const OF_TEXT: [&str; 16] = [
    "quote",
    "squote",
    "lower",
    "upper",
    "title",
    "trim",
    "trimAll",
    "trimPrefix",
    "trimSuffix",
    "trunc",
    "replace",
    "nospace",
    "b64enc",
    "urlquery",
    "html",
    "js",
];

/// The chain that a pipeline begins with, if it is nothing but that and what makes a text of it.
fn printed(pipe: &Pipe) -> Option<&[std::sync::Arc<str>]> {
    let (first, rest) = pipe.commands.split_first()?;
    let of_text = |operand: Option<&Operand>| matches!(operand.map(|it| &it.expr), Some(Expr::Function(function)) if OF_TEXT.contains(&function.name));
    match first.operands.as_slice() {
        [Operand { expr: Expr::Field(chain), .. }]
            if pipe.variables.is_empty() && rest.iter().all(|command| of_text(command.operands.first())) =>
        {
            Some(chain)
        }
        _ => None,
    }
}

#[derive(Default)]
struct Uses {
    fields: Vec<String>,
    functions: Vec<&'static str>,
}

impl Uses {
    fn statements(&mut self, statements: &[Stmt], root: bool) {
        for statement in statements {
            match statement {
                Stmt::Action(pipe) => self.pipe(pipe, root),
                Stmt::If(branch) => self.branch(branch, root, root),
                Stmt::With(branch) | Stmt::Range(branch) => self.branch(branch, root, false),
                Stmt::Template { pipe: Some(pipe), .. } => self.pipe(pipe, root),
                Stmt::Template { pipe: None, .. } | Stmt::Text(_) | Stmt::Break | Stmt::Continue => {}
            }
        }
    }

    fn branch(&mut self, branch: &Branch, root: bool, body_root: bool) {
        self.pipe(&branch.pipe, root);
        self.statements(&branch.body, body_root);
        self.statements(&branch.otherwise, root);
    }

    fn pipe(&mut self, pipe: &Pipe, root: bool) {
        for operand in pipe.commands.iter().flat_map(|command| &command.operands) {
            self.operand(operand, root);
        }
    }

    fn operand(&mut self, operand: &Operand, root: bool) {
        match &operand.expr {
            Expr::Field(names) if root => self.field(names.first()),
            Expr::Variable(name, names) if &**name == "$" => self.field(names.first()),
            Expr::Chain(inner, _) => self.operand(inner, root),
            Expr::Pipe(pipe) => self.pipe(pipe, root),
            Expr::Function(function) if !self.functions.contains(&function.name) => {
                self.functions.push(function.name);
            }
            _ => {}
        }
    }

    fn field(&mut self, name: Option<&std::sync::Arc<str>>) {
        if let Some(name) = name
            && !self.fields.iter().any(|known| **known == **name)
        {
            self.fields.push(name.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Template;

    #[test]
    fn fields_of_the_root_and_functions_are_told() {
        let text = r#"{{.a.b | upper}}{{if .c}}{{.d}}{{else if .e}}x{{end}}{{range $i, $x := .f}}{{.no}}{{$x.no}}{{$.g}}{{else}}{{.h}}{{end}}{{define "t"}}{{.no | lower}}{{end}}{{template "t" (index .i 0)}}{{(.j).k}}"#;
        let template = Template::parse("whole", text).expect("a template");
        assert_eq!(template.root_fields(), ["a", "c", "d", "e", "f", "g", "h", "i", "j"]);
        assert_eq!(template.functions(), ["lower", "upper", "index"]);
    }

    #[test]
    fn what_is_printed_whatever_happens_is_told() {
        let printed = |text: &str| Template::parse("whole", text).expect("a template").printed_fields();
        assert_eq!(
            printed("{{.a.b}} {{ .c | trunc 5 | quote }}{{.a.b}}{{ $.d }}"),
            [vec!["a", "b"], vec!["c"]]
        );
        for text in [
            "{{if .a}}{{.b}}{{end}}",
            "{{range .a}}{{.b}}{{end}}{{with .c}}{{.d}}{{end}}",
            "{{toJson .a}}{{.b | toJson}}{{.c | default `d`}}{{$x := .e}}",
            "{{define `t`}}{{.a}}{{end}}{{template `t` .}}",
            "{{$_ := set . `a` 1}}{{.a}}",
        ] {
            assert!(printed(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn templates_that_change_maps_are_told_from_others() {
        for (text, changes) in [
            ("{{$_ := set . `a` 1}}", true),
            ("{{define `t`}}{{merge . (dict)}}{{end}}", true),
            ("{{if (unset .a `b`).c}}{{end}}", true),
            ("{{get .a `b` | default (dict `set` 1)}}", false),
        ] {
            let template = Template::parse("t", text).expect("a template");
            assert_eq!(template.changes_maps(), changes, "{text}");
        }
    }
}

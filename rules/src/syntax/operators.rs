//! Operators and their priorities.

use foldhash::fast::RandomState;

/// How an operator stands to its operands, and how tight it binds; `x` is an operand of a lower priority, `y` may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(crate) priority: u16,
    pub(crate) left: u16,
    pub(crate) right: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Operators {
    prefix: hashbrown::HashMap<String, Operator, RandomState>,
    infix: hashbrown::HashMap<String, Operator, RandomState>,
    postfix: hashbrown::HashMap<String, Operator, RandomState>,
}

impl Default for Operators {
    fn default() -> Self {
        let mut operators = Self {
            prefix: hashbrown::HashMap::default(),
            infix: hashbrown::HashMap::default(),
            postfix: hashbrown::HashMap::default(),
        };
        for (priority, kind, names) in [
            (1200, "xfx", ":- --> @"),
            (1200, "fx", ":- ?-"),
            (1190, "xfx", "pragma"),
            (1180, "xfx", "==> <=>"),
            (1150, "fx", "constraints chr_constraint chr_type dynamic discontiguous initialization"),
            (1130, "xfx", "--->"),
            (1105, "xfy", "|"),
            (1100, "xfy", ";"),
            (1100, "xfx", "\\"),
            (1050, "xfy", "-> *->"),
            (1000, "xfy", ","),
            (990, "xfx", ":="),
            (900, "fy", "\\+"),
            (700, "xfx", "< = =.. =@= =:= =< == =\\= > >= @< @=< @> @>= \\= \\== \\=@= as is"),
            (600, "xfy", ":"),
            (500, "yfx", "+ - /\\ \\/ xor"),
            (500, "yfx", "#"),
            (500, "fx", "?"),
            (400, "yfx", "* / // mod rem << >> div rdiv divmod"),
            (200, "xfx", "**"),
            (200, "xfy", "^"),
            (200, "fy", "- + \\"),
            (100, "yfx", "."),
            (1, "fx", "$"),
        ] {
            for name in names.split(' ') {
                operators.set(priority, kind, name);
            }
        }
        operators
    }
}

impl Operators {
    /// Makes a name an operator; of priority 0 it is none any more. Returns whether the kind is one.
    pub(crate) fn set(&mut self, priority: u16, kind: &str, name: &str) -> bool {
        let below = priority.saturating_sub(1);
        let (table, left, right) = match kind {
            "xfx" => (&mut self.infix, below, below),
            "xfy" => (&mut self.infix, below, priority),
            "yfx" => (&mut self.infix, priority, below),
            "fy" => (&mut self.prefix, 0, priority),
            "fx" => (&mut self.prefix, 0, below),
            "yf" => (&mut self.postfix, priority, 0),
            "xf" => (&mut self.postfix, below, 0),
            _ => return false,
        };
        if priority == 0 {
            table.remove(name);
        } else {
            table.insert(name.to_owned(), Operator { priority, left, right });
        }
        true
    }

    pub(crate) fn prefix(&self, name: &str) -> Option<Operator> {
        self.prefix.get(name).copied()
    }

    pub(crate) fn infix(&self, name: &str) -> Option<Operator> {
        self.infix.get(name).copied()
    }

    pub(crate) fn postfix(&self, name: &str) -> Option<Operator> {
        self.postfix.get(name).copied()
    }

    pub(crate) fn is_one(&self, name: &str) -> bool {
        self.prefix.contains_key(name) || self.infix.contains_key(name) || self.postfix.contains_key(name)
    }
}

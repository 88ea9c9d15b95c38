//! The matrix: models × tools × sets × cases × repeats, in one fixed order.

use crate::case::Case;
use crate::case::select::Selected;
use crate::chat::{Function, Opened};
use crate::model::Model;
use crate::model::price::Price;
use crate::model::recording::Key;
use crate::model::text_calls::TextCalls;
use crate::record::CellPlan;
use crate::record::run_file::Part;
use crate::tool::{EditTool, Offered};

use super::fingerprint;
use super::settings::RunSettings;

/// A model of the plan, with what is recorded of it.
pub struct PlannedModel {
    pub model: Box<dyn Model>,
    /// Settings that its answers depend on: sampling, extra body fields.
    pub settings: serde_json::Value,
    /// The wire protocol, by name; none of a stand-in.
    pub protocol: Option<String>,
    /// Whether calls in its text are run, where that is set for this model alone.
    pub text_calls: Option<TextCalls>,
    pub price: Option<Price>,
}

impl PlannedModel {
    /// A model of which nothing else is set.
    pub fn plain(model: Box<dyn Model>, settings: serde_json::Value) -> Self {
        PlannedModel { model, settings, protocol: None, text_calls: None, price: None }
    }
}

/// Everything that will be tried.
pub struct Plan<'a> {
    pub models: &'a [PlannedModel],
    pub tools: &'a [Box<dyn EditTool>],
    pub selected: &'a [Selected<'a>],
    pub settings: &'a RunSettings,
    pub cells: Vec<Cell>,
    /// By tool: the same for every attempt, so made once.
    offers: Vec<Offer>,
}

/// What a tool offers to a model.
pub struct Offer {
    pub offered: Vec<Offered>,
    pub functions: Vec<Function>,
    pub digest: Opened,
}

impl Offer {
    fn of(tool: &dyn EditTool) -> Self {
        let offered = tool.functions();
        let functions: Vec<Function> = offered.iter().map(|each| each.function.clone()).collect();
        let digest = Opened::with(&functions);
        Offer { offered, functions, digest }
    }
}

/// One cell, as indexes into the plan.
pub struct Cell {
    pub plan: CellPlan,
    model: usize,
    tool: usize,
    set: usize,
}

/// The named subsets of a set that was chosen whole.
fn parts(chosen: &Selected<'_>) -> Vec<Part> {
    if chosen.narrowed || chosen.subset.is_some() {
        return Vec::new();
    }
    let part = |(subset, members): (&String, &Vec<String>)| {
        let cases = chosen.cases.iter().copied().filter(|case| members.contains(&case.id)).collect();
        let selected = Selected { set: chosen.set, subset: Some(subset.clone()), cases, narrowed: false };
        Part { subset: subset.clone(), digest: selected.digest(), cases: members.clone() }
    };
    chosen.set.subsets.iter().map(part).collect()
}

/// One attempt to be made.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    /// Place in the order of the plan.
    pub index: usize,
    pub cell: &'a CellPlan,
    pub model: &'a dyn Model,
    pub text_calls: TextCalls,
    pub price: Option<Price>,
    pub tool: &'a dyn EditTool,
    pub offer: &'a Offer,
    pub case: &'a Case,
    pub repeat: usize,
}

impl Planned<'_> {
    pub fn key(&self) -> Key {
        Key {
            tool: self.cell.tool.clone(),
            prompt: self.cell.prompt.clone(),
            set: self.cell.set.clone(),
            case: self.case.id.clone(),
            repeat: self.repeat,
        }
    }
}

impl<'a> Plan<'a> {
    pub fn new(
        models: &'a [PlannedModel],
        tools: &'a [Box<dyn EditTool>],
        selected: &'a [Selected<'a>],
        settings: &'a RunSettings,
    ) -> Self {
        let mut cells = Vec::new();
        let digests: Vec<String> = selected.iter().map(Selected::digest).collect();
        let parts: Vec<Vec<Part>> = selected.iter().map(parts).collect();
        for (model, planned) in models.iter().enumerate() {
            for (tool, edit_tool) in tools.iter().enumerate() {
                for (set, chosen) in selected.iter().enumerate() {
                    let plan = CellPlan {
                        model: planned.model.name().to_owned(),
                        tool: edit_tool.name().to_owned(),
                        set: chosen.set.name.clone(),
                        subset: chosen.subset.clone(),
                        prompt: settings.prompt.name().to_owned(),
                        digest: digests[set].clone(),
                        conditions: fingerprint::conditions(planned, edit_tool.as_ref(), settings),
                        narrowed: chosen.narrowed,
                        cases: chosen.cases.len(),
                        repeats: settings.repeat,
                        parts: parts[set].clone(),
                    };
                    cells.push(Cell { plan, model, tool, set });
                }
            }
        }
        let offers = tools.iter().map(|tool| Offer::of(tool.as_ref())).collect();
        Plan { models, tools, selected, settings, cells, offers }
    }

    /// How many attempts there are.
    pub fn len(&self) -> usize {
        self.cells.iter().map(|cell| cell.plan.attempts()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All attempts, in order.
    pub fn attempts(&self) -> impl Iterator<Item = Planned<'_>> {
        self.cells
            .iter()
            .flat_map(move |cell| {
                let repeats = self.settings.repeat;
                self.selected[cell.set]
                    .cases
                    .iter()
                    .flat_map(move |case| (0..repeats).map(move |repeat| (cell, *case, repeat)))
            })
            .enumerate()
            .map(|(index, (cell, case, repeat))| Planned {
                index,
                cell: &cell.plan,
                model: self.models[cell.model].model.as_ref(),
                text_calls: self.models[cell.model].text_calls.unwrap_or(self.settings.text_calls),
                price: self.models[cell.model].price,
                tool: self.tools[cell.tool].as_ref(),
                offer: &self.offers[cell.tool],
                case,
                repeat,
            })
    }
}

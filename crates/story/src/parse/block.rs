//! Blocks of a story: lines between a header and its `end`.

use crate::BLOCK_DEPTH_MAX;
use crate::error::StoryError;
use crate::line_reader::LineReader;

/// Words that begin a block.
pub(crate) const BLOCK_WORDS: [&str; 3] = ["repeat", "for", "randomly"];

/// The word that ends a block.
pub(crate) const END_WORD: &str = "end";

/// A line, or a block of them. Lines are counted from 0.
pub(super) enum BlockItem {
    Line(usize),
    Block { header: usize, items: Vec<BlockItem> },
}

/// Sorts lines into blocks. Lines without words are left out.
pub(super) fn blocks(lines: &[&str]) -> Result<Vec<BlockItem>, StoryError> {
    // Blocks that have begun: the header, and the items so far.
    let mut open: Vec<(usize, Vec<BlockItem>)> = Vec::new();
    let mut outer = Vec::new();
    for (index, text) in lines.iter().enumerate() {
        let mut line = LineReader::new(index + 1, text);
        let Some(word) = line.take() else { continue };
        if word.text == END_WORD {
            line.end()?;
            let Some((header, items)) = open.pop() else {
                return Err(line.error_at(word, "no block begins before this `end`"));
            };
            let block = BlockItem::Block { header, items };
            open.last_mut().map_or(&mut outer, |(_, items)| items).push(block);
        } else if BLOCK_WORDS.contains(&word.text) {
            if open.len() >= BLOCK_DEPTH_MAX {
                let message = format!("blocks are nested at most {BLOCK_DEPTH_MAX} deep");
                return Err(line.error_at(word, message));
            }
            open.push((index, Vec::new()));
        } else {
            open.last_mut().map_or(&mut outer, |(_, items)| items).push(BlockItem::Line(index));
        }
    }
    match open.pop() {
        None => Ok(outer),
        Some((header, _)) => {
            let line = LineReader::new(header + 1, lines[header]);
            Err(line.error_at_end("the block has no `end`"))
        }
    }
}

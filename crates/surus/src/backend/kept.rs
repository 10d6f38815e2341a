//! Converts a stored body to the engine's type.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use surus_edge::{BodyFile, Piece, SpooledFile};
use surus_zend::{KeptBody, KeptFile, KeptPiece};

#[derive(Debug)]
struct Lendable(BodyFile);

impl KeptFile for Lendable {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn lend(&mut self) -> Option<PathBuf> {
        self.0.lend()
    }

    fn spare_name(&self) -> io::Result<PathBuf> {
        self.0.spare_name()
    }

    fn give_back(&mut self, name: PathBuf) {
        self.0.give_back(name);
    }
}

pub(super) fn body(file: SpooledFile) -> Box<KeptBody> {
    let mut permits = Vec::new();
    let pieces = file.kept.pieces.into_iter().map(|piece| match piece {
        Piece::Text(length) => KeptPiece::Text(length),
        Piece::File(file, length, permit) => {
            permits.push(permit);
            KeptPiece::File(Box::new(Lendable(file)), length)
        }
    });
    let pieces: Vec<_> = pieces.collect();
    let guard = (file.share, permits);
    Box::new(KeptBody::new(
        Box::new(Lendable(file.kept.text)),
        pieces,
        guard,
    ))
}

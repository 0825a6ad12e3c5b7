import { ENTRY_BYTES } from '../core/receipt.ts';
import { openCheckpoint, verifierText } from './note.ts';
import type { Receipts } from './receipts.ts';
import { hashesIn, TILE_WIDTH, widthOf } from './tiles.ts';

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
/** C2SP tlog-tiles: `tile/0/x001/067`, `tile/entries/067.p/12`. */
const TILE = /^tile\/(entries|[0-5])\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/(\d{1,3}))?$/;

/**
 * The log as its readers see it (C2SP tlog-tiles): `checkpoint`, `tile/…`, `key`, and `N`, which proves entry N. Behind a prefix
 * all of it can be read by anybody: it says nothing to who does not have the salts.
 */
export function logDocuments(receipts: Receipts) {
  const { reader, verifier } = receipts;
  return {
    prefix: '/receipts/',
    async find(path: string) {
      if (path === 'checkpoint') return text(receipts.checkpoint());
      if (path === 'key') return text(`${verifierText(verifier)}\n`);
      if (/^(0|[1-9]\d{0,14})$/.test(path)) return text(await receipts.proof(Number(path)));
      const [, what, name = '', part] = TILE.exec(path) ?? [];
      const note = what === undefined ? null : receipts.checkpoint();
      const head = note === null ? null : openCheckpoint(note, verifier);
      if (what === undefined || head === null) return null;
      const level = what === 'entries' ? 0 : Number(what);
      const index = Number(name.replaceAll(/[x/]/g, ''));
      const width = part === undefined ? TILE_WIDTH : Number(part);
      if (width < 1 || width > widthOf(level, index, head.size)) return null;
      return fixed(
        what === 'entries'
          ? bundle(reader.entries(index * TILE_WIDTH, width))
          : reader.tile({ level, index, width }),
      );
    },
  };
}

const fixed = (body: Buffer) => ({ type: BYTES, body, isFixed: true });

const text = (body: string | null) => (body === null ? null : { type: TEXT, body, isFixed: false });

/** Each entry behind its length, two bytes, big-endian. */
function bundle(entries: Buffer): Buffer {
  const length = Buffer.of(0, ENTRY_BYTES);
  return Buffer.concat(hashesIn(entries).flatMap((entry) => [length, entry]));
}

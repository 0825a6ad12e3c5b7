import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { SEGMENTS } from '../../core/archive-segments.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { Heads, ManifestHead, NotedArchive, NotedHead } from '../../core/proof.ts';
import { checkSigned, signJson, type Signer } from '../../core/signature.ts';
import { CHAIN_START } from '../../lib/chained-log.ts';
import { isMissing, makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { writeDurably } from '../../lib/new-file.ts';

/** What is noted of one archive, as its file has it, but for the signature. */
interface Note extends ManifestHead {
  /** Absolute path of its folder, or URL. */
  readonly archive: string;
  /** Heads that were noted, and that its manifest did not hold any more when the next was. */
  readonly lost: readonly ManifestHead[];
  /** Names of sinks that write it; absent on older notes and on those of the chains of a store. */
  readonly sinks?: readonly string[];
  /** Folders in which files wait for a store. */
  readonly spools?: readonly string[];
}

/** The head of an archive that has no line yet. */
const EMPTY = { head: CHAIN_START.hash, bytes: 0, lost: [] };

/** What the note of an archive says to who verifies it. */
export interface NotedHeads {
  readonly path: string;
  /** All of them must be in the manifest; none when nothing was noted. */
  readonly heads: readonly ManifestHead[];
  /** True for a note that is not as it was signed: then it says nothing. */
  readonly forged: boolean;
}

/** Heads in files, one an archive: `{"archive","head","bytes","lost","sinks","spools","signed_by","signature"}`. */
export class HeadFiles implements Heads {
  readonly #folder: string;
  readonly #signer: Signer | null;
  readonly #trusted: ReadonlySet<string>;
  readonly #known: Map<string, NotedHead>;

  /**
   * @param signer null for notes that are only read
   * @param trusted public keys whose notes count
   * @param known is filled with what this process notes or reads, by folder
   */
  constructor(
    folder: string,
    signer: Signer | null,
    trusted: ReadonlySet<string>,
    known = new Map<string, NotedHead>(),
  ) {
    this.#folder = folder;
    this.#signer = signer;
    this.#trusted = trusted;
    this.#known = known;
  }

  of(root: string): ManifestHead | null {
    // Another process may have noted a later one. A forged note is reported by who verifies; the next takes its place.
    const { note } = this.#read(root);
    if (note === null || note.bytes === 0) return null;
    this.#known.set(root, { head: note.head, bytes: note.bytes, lost: note.lost.length });
    return note;
  }

  async note(root: string, { head, bytes }: ManifestHead, lost: ManifestHead | null): Promise<void> {
    if (this.#signer === null) return;
    const { lost: before, ...rest } = this.#read(root).note ?? EMPTY;
    const all = lost === null ? before : [...before, { head: lost.head, bytes: lost.bytes }];
    await this.#write({ ...rest, archive: root, head, bytes, lost: all }, this.#signer);
    this.#known.set(root, { head, bytes, lost: all.length });
  }

  async noteWriter(
    place: string,
    { sink, spool }: { readonly sink: string; readonly spool?: string },
  ): Promise<void> {
    if (this.#signer === null) return;
    const note: Note = this.#read(place).note ?? { archive: place, ...EMPTY };
    const { sinks = [], spools = [] } = note;
    const isSpoolNoted = spool === undefined || spools.includes(spool);
    if (sinks.includes(sink) && isSpoolNoted) return;
    const added = {
      sinks: [...new Set([...sinks, sink])],
      spools: isSpoolNoted ? spools : [...spools, spool],
    };
    await this.#write({ ...note, ...added }, this.#signer);
  }

  /** To be read before the manifest is: it may continue meanwhile. */
  noted(root: string): NotedHeads {
    const { note, forged } = this.#read(root);
    return { path: join(this.#folder, nameOf(root)), heads: note === null ? [] : headsIn(note), forged };
  }

  /** Those of the chains whose roots begin so: each writer to a store has one. A forged note may be of any. */
  notedBelow(root: string): NotedHeads[] {
    return this.#noteFiles().flatMap((path): NotedHeads[] => {
      const { note } = this.#readFile(path);
      if (note === null || nameOf(note.archive) !== basename(path))
        return [{ path, heads: [], forged: true }];
      if (!note.archive.startsWith(root)) return [];
      return [{ path, heads: headsIn(note), forged: false }];
    });
  }

  archives(): readonly NotedArchive[] {
    const notes = this.#noteFiles().flatMap((path) => {
      const { note } = this.#readFile(path);
      return note === null ? [] : [{ path, note, place: placeOf(note.archive) }];
    });
    return Array.from(
      Map.groupBy(notes, ({ place }) => place),
      ([place, own]) => ({
        place,
        sinks: own.flatMap(({ note }) => note.sinks ?? []),
        spools: own.flatMap(({ note }) => note.spools ?? []),
        notes: own.map(({ path }) => path),
      }),
    );
  }

  forged(): readonly string[] {
    return this.#noteFiles().filter((path) => this.#readFile(path).forged);
  }

  async #write(note: Note, signer: Signer): Promise<void> {
    const { archive, head, bytes, lost, sinks = [], spools = [] } = note;
    const more = { ...(sinks.length > 0 ? { sinks } : {}), ...(spools.length > 0 ? { spools } : {}) };
    const text = signJson('head', JSON.stringify({ archive, head, bytes, lost, ...more }), signer);
    makeFolder(this.#folder, 0o700);
    await writeDurably(this.#folder, nameOf(archive), `${text}\n`, OWNER_ONLY);
  }

  #noteFiles(): string[] {
    const names = readNames(this.#folder).filter((name) => /^[0-9a-f]{16}\.json$/.test(name));
    return names.map((name) => join(this.#folder, name));
  }

  #read(root: string): { readonly note: Note | null; readonly forged: boolean } {
    const { note, forged } = this.#readFile(join(this.#folder, nameOf(root)));
    return note === null || note.archive === root ? { note, forged } : { note: null, forged: true };
  }

  #readFile(path: string): { readonly note: Note | null; readonly forged: boolean } {
    let text: string | undefined;
    try {
      text = readIfThere(path)?.trimEnd();
    } catch (error) {
      throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
    }
    if (text === undefined) return { note: null, forged: false };
    const { state, by } = checkSigned('head', text);
    const note = state === 'valid' && this.#trusted.has(by) ? (JSON.parse(text) as Note) : null;
    return { note, forged: note === null };
  }
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw new MillraceError('proof_unusable', `${folder}: ${messageOf(error)}`, { cause: error });
  }
}

/** All that the manifest must hold. */
function headsIn({ head, bytes, lost }: Note): ManifestHead[] {
  return bytes === 0 ? [...lost] : [...lost, { head, bytes }];
}

/** A store has a note for each of its writers' chains, and one for its sinks. */
function placeOf(archive: string): string {
  const at = isStoreUrl(archive) ? archive.lastIndexOf(`/${SEGMENTS}`) : -1;
  return at === -1 ? archive : archive.slice(0, at);
}

function nameOf(root: string): string {
  return `${hash('sha256', root, 'hex').slice(0, 16)}.json`;
}

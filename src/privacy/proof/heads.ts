import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { SEGMENTS } from '../../archive/segments.ts';
import { MillraceError } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { Heads, ManifestHead, NotedArchive, NotedHead } from '../../core/proof.ts';
import { CHAIN_START } from '../../lib/chained-log.ts';
import { namesIn } from '../../lib/durable.ts';
import { fileNameFor, reading, type Signed, type SignedFiles } from './signed-files.ts';

/** What is noted of one archive, as its file has it without the signature. */
interface Note extends ManifestHead {
  /** Absolute path of its folder, or URL. */
  readonly archive: string;
  /** Heads noted before, which its manifest no longer had when the next was noted. */
  readonly lost: readonly ManifestHead[];
  /** Names of sinks that write it; absent on notes of the chains of a store. */
  readonly sinks?: readonly string[];
  /** Folders in which files wait for a store. */
  readonly spools?: readonly string[];
}

/** Of an archive without a line in its manifest. */
const EMPTY = { head: CHAIN_START.hash, bytes: 0, lost: [] };

/** Ends the name of a note that was not as it was signed when another took its place. */
const ASIDE = '.forged';

/** Heads that the manifest of an archive must contain. */
export interface NotedHeads {
  /** File of the note. */
  readonly path: string;
  /** Empty when nothing was noted. */
  readonly heads: readonly ManifestHead[];
  /** True when the note is not as it was signed: then it says nothing. */
  readonly forged: boolean;
}

/** Heads in files, one an archive: `{"archive","head","bytes","lost","sinks","spools","signed_by","signature"}`. */
export class HeadFiles implements Heads {
  readonly #folder: string;
  readonly #files: SignedFiles;
  readonly #known: Map<string, NotedHead>;

  /** @param known is filled with the heads that this process notes or reads, by folder */
  constructor(folder: string, files: SignedFiles, known = new Map<string, NotedHead>()) {
    this.#folder = folder;
    this.#files = files;
    this.#known = known;
  }

  of(root: string): ManifestHead | null {
    // Read each time: another process may have noted a later head.
    const note = this.#read(root);
    if (note === 'forged')
      throw new MillraceError(
        'proof_unusable',
        `${this.#path(root)} is not as it was signed, or its key is not trusted`,
      );
    if (note === null || note.bytes === 0) return null;
    this.#known.set(root, { head: note.head, bytes: note.bytes, lost: note.lost.length });
    return note;
  }

  async note(root: string, { head, bytes }: ManifestHead, lost: ManifestHead | null): Promise<void> {
    const before = await this.#keepForged(root);
    const all = [...(before?.lost ?? []), ...(lost === null ? [] : [{ head: lost.head, bytes: lost.bytes }])];
    await this.#write({ ...before, archive: root, head, bytes, lost: all });
    this.#known.set(root, { head, bytes, lost: all.length });
  }

  async noteWriter(
    place: string,
    { sink, spool }: { readonly sink: string; readonly spool?: string },
  ): Promise<void> {
    const note: Note = (await this.#keepForged(place)) ?? { archive: place, ...EMPTY };
    const sinks = new Set(note.sinks).add(sink);
    const spools = new Set(note.spools);
    if (spool !== undefined) spools.add(spool);
    if (sinks.size === note.sinks?.length && spools.size === (note.spools?.length ?? 0)) return;
    await this.#write({ ...note, sinks: [...sinks], spools: [...spools] });
  }

  /** To be read before the manifest, which may get another line. */
  noted(root: string): NotedHeads[] {
    const note = this.#read(root);
    const heads = note === null || note === 'forged' ? [] : headsIn(note);
    const noted = [{ path: this.#path(root), heads, forged: note === 'forged' }];
    const aside = this.#path(root) + ASIDE;
    return existsSync(aside) ? [...noted, { path: aside, heads: [], forged: true }] : noted;
  }

  /** Those of the chains whose roots begin with `root`: each writer to a store has one. A forged note may be of any. */
  notedBelow(root: string): NotedHeads[] {
    return this.#notes().flatMap(([path, note]): NotedHeads[] => {
      if (note === 'forged' || fileNameFor(note.archive) !== basename(path))
        return [{ path, heads: [], forged: true }];
      return note.archive.startsWith(root) ? [{ path, heads: headsIn(note), forged: false }] : [];
    });
  }

  archives(): readonly NotedArchive[] {
    const notes = this.#notes().flatMap(([path, note]) => (note === 'forged' ? [] : [{ path, note }]));
    return Array.from(
      Map.groupBy(notes, ({ note }) => placeOf(note.archive)),
      ([place, own]) => ({
        place,
        sinks: own.flatMap(({ note }) => note.sinks ?? []),
        spools: own.flatMap(({ note }) => note.spools ?? []),
        notes: own.map(({ path }) => path),
      }),
    );
  }

  forged(): readonly string[] {
    return this.#notes().flatMap(([path, note]) => (note === 'forged' ? [path] : []));
  }

  async #write({ archive, head, bytes, lost, sinks = [], spools = [] }: Note): Promise<void> {
    const more = { ...(sinks.length > 0 ? { sinks } : {}), ...(spools.length > 0 ? { spools } : {}) };
    const note = { archive, head, bytes, lost, ...more };
    await this.#files.write('head', this.#folder, fileNameFor(archive), note);
  }

  /** All notes, by the paths of their files. */
  #notes(): [path: string, note: Note | 'forged'][] {
    const names = reading(this.#folder, () => namesIn(this.#folder));
    return names.flatMap((name) => {
      const path = join(this.#folder, name);
      if (name.endsWith(ASIDE)) return [[path, 'forged'] as [string, 'forged']];
      const note = /^[0-9a-f]{16}\.json$/.test(name) ? this.#files.read<Note>('head', path) : null;
      return note === null ? [] : [[path, note] as [string, Note | 'forged']];
    });
  }

  #read(root: string): Signed<Note> {
    const note = this.#files.read<Note>('head', this.#path(root));
    return note === null || note === 'forged' || note.archive === root ? note : 'forged';
  }

  #path(root: string): string {
    return join(this.#folder, fileNameFor(root));
  }

  /** The note that another replaces; a forged one is kept aside, for verifications and erasures, until a person has removed it. */
  async #keepForged(root: string): Promise<Note | null> {
    const note = this.#read(root);
    if (note !== 'forged') return note;
    await rename(this.#path(root), this.#path(root) + ASIDE);
    return null;
  }
}

/** All that the manifest must contain. */
function headsIn({ head, bytes, lost }: Note): ManifestHead[] {
  return bytes === 0 ? [...lost] : [...lost, { head, bytes }];
}

/** The archive that a note belongs to: a store has a note for each of its writers' chains, and one for its sinks. */
function placeOf(archive: string): string {
  const at = isStoreUrl(archive) ? archive.lastIndexOf(`/${SEGMENTS}`) : -1;
  return at === -1 ? archive : archive.slice(0, at);
}

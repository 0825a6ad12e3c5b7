import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import { SEGMENTS } from '../core/archive-segments.ts';
import { isStoreUrl } from '../core/place.ts';
import type { Heads, ManifestHead, NotedHead } from '../core/proof.ts';
import { checkSigned, signJson, type Signer } from '../core/signature.ts';
import { isMissing, makeFolder, OWNER_ONLY, readIfThere } from '../lib/durable.ts';
import { writeDurably } from '../lib/new-file.ts';

/** What is noted of one archive, as its file has it, but for the signature. */
interface Note extends ManifestHead {
  /** Absolute path of its folder. */
  readonly archive: string;
  /** Heads that were noted, and that its manifest did not hold any more when the next was. */
  readonly lost: readonly ManifestHead[];
}

/** What the note of an archive says to who verifies it. */
export interface NotedHeads {
  readonly path: string;
  /** All of them must be in the manifest; none when nothing was noted. */
  readonly heads: readonly ManifestHead[];
  /** True for a note that is not as it was signed: then it says nothing. */
  readonly forged: boolean;
}

/** Heads in files, one an archive: `{"archive","head","bytes","lost","signed_by","signature"}`. */
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
    if (note !== null) this.#known.set(root, { head: note.head, bytes: note.bytes, lost: note.lost.length });
    return note;
  }

  async note(root: string, { head, bytes }: ManifestHead, lost: ManifestHead | null): Promise<void> {
    if (this.#signer === null) return;
    const before = this.#read(root).note?.lost ?? [];
    const all = lost === null ? before : [...before, { head: lost.head, bytes: lost.bytes }];
    const note: Note = { archive: root, head, bytes, lost: all };
    const text = signJson('head', JSON.stringify(note), this.#signer);
    makeFolder(this.#folder, 0o700);
    await writeDurably(this.#folder, nameOf(root), `${text}\n`, OWNER_ONLY);
    this.#known.set(root, { head, bytes, lost: all.length });
  }

  /** To be read before the manifest is: it may continue meanwhile. */
  noted(root: string): NotedHeads {
    const { note, forged } = this.#read(root);
    const heads = note === null ? [] : [...note.lost, { head: note.head, bytes: note.bytes }];
    return { path: join(this.#folder, nameOf(root)), heads, forged };
  }

  /** Those of the chains whose roots begin so: each writer to a store has one. A forged note may be of any. */
  notedBelow(root: string): NotedHeads[] {
    return this.#noteFiles().flatMap((path): NotedHeads[] => {
      const { note } = this.#readFile(path);
      if (note === null || nameOf(note.archive) !== basename(path))
        return [{ path, heads: [], forged: true }];
      if (!note.archive.startsWith(root)) return [];
      return [{ path, heads: [...note.lost, { head: note.head, bytes: note.bytes }], forged: false }];
    });
  }

  archives(): readonly string[] {
    const roots = this.#noteFiles().flatMap((path) => this.#readFile(path).note?.archive ?? []);
    // A store has one for each of its writers.
    return [
      ...new Set(
        roots.map((root) => (isStoreUrl(root) ? root.slice(0, root.lastIndexOf(`/${SEGMENTS}`)) : root)),
      ),
    ];
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

function nameOf(root: string): string {
  return `${hash('sha256', root, 'hex').slice(0, 16)}.json`;
}

import { RecordCounts } from '../../archive/facts.ts';
import { fileLines } from '../../archive/file-lines.ts';
import { isUnfinished } from '../../archive/file-kind.ts';
import { readManifest } from '../../archive/manifest.ts';
import type { ArchiveListing, Bytes } from '../../archive/place.ts';
import type { ErasureLine, ManifestLine, NewManifestLine } from '../../core/archive-manifest.ts';
import type { ErasedItem } from '../../core/erasure.ts';
import { isMissing } from '../../core/objects.ts';
import { errorCode } from '../../lib/durable.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { kindOf } from './file-kinds.ts';
import { countLine, type Rewrite } from './rewrite-lines.ts';

/** What the manifest is to say of a file that was changed. */
type Change = Omit<Rewrite, 'before'> & { readonly at: Date };

interface ListingOptions {
  /** Adds a line to the manifest, durably; null when the place is not an archive. */
  readonly append: ((line: NewManifestLine) => Promise<void>) | null;
  /** The current manifest. */
  readonly manifest: () => Promise<Pick<ArchiveListing, 'place' | 'manifest'>>;
}

/** The manifest of an archive, to which an erasure adds a line for each file that it changes. */
export class Listing {
  readonly #options: ListingOptions;
  #entries = new Map<string, ManifestLine>();
  /** Unfinished files, which have no entry, as earlier erasures have left them: `sha256 file`. */
  readonly #parts = new Set<string>();

  constructor(options: ListingOptions) {
    this.#options = options;
  }

  /** Reads the manifest; until then it counts as empty. */
  async refresh(): Promise<void> {
    if (this.#options.append === null) return;
    const onEntry = (entry: ManifestLine): void => {
      if ('erasure' in entry) this.#parts.add(`${entry.sha256} ${entry.file}`);
    };
    this.#entries = new Map((await readManifest(await this.#options.manifest(), { onEntry })).entries);
  }

  /** Files that are listed; some may have been removed. */
  get files(): Iterable<string> {
    return this.#entries.keys();
  }

  /** Whether the newest line of a file, if there is one, has this hash. Reads the manifest again if it does not. */
  async agrees(file: string, sha256: string): Promise<boolean> {
    if (this.#agrees(file, sha256)) return true;
    await this.refresh();
    return this.#agrees(file, sha256);
  }

  #agrees(file: string, sha256: string): boolean {
    const listed = this.#entries.get(file);
    return listed === undefined || listed.sha256 === sha256;
  }

  /** Adds the line; durable once it resolves. */
  async add(file: string, change: Change): Promise<void> {
    if (this.#options.append === null || !isListed(file)) return;
    const before = this.#entries.get(file);
    // Later than the line of another machine's erasure, whatever the clocks say.
    const earliest = before !== undefined && 'erasure' in before ? Date.parse(before.at) + 1 : 0;
    const line = lineFor(file, change, new Date(Math.max(change.at.getTime(), earliest)));
    await this.#options.append(line);
    this.#entries.set(file, { ...line, previous: '' });
  }

  /** Lists a change that an interrupted run has recorded and not listed. */
  async finish(bytes: Bytes, file: string, item: ErasedItem): Promise<void> {
    const { removed, sha256_before: before, sha256_after: after } = item;
    if (this.#options.append === null || !isListed(file) || before === after) return;
    const isKnown = isUnfinished(file)
      ? this.#parts.has(`${after} ${file}`)
      : before === null || !this.#agrees(file, before);
    if (isKnown) return;
    const there = await hashChunks(bytes.chunks(file)).catch((error: unknown) => {
      if (!isGone(error)) throw error;
      return null;
    });
    if ((there?.sha256 ?? null) !== after) return;
    const contents = new RecordCounts();
    if (there !== null)
      for await (const batch of fileLines(bytes, file))
        for (const { bytes: line } of batch) if (line !== null) countLine(contents, line);
    const lines = Object.values(removed).reduce((sum, count) => sum + count, 0);
    await this.add(file, { removed, lines, contents, after: there, at: new Date() });
  }
}

/** Whether the manifest has lines for such a file. */
function isListed(file: string): boolean {
  const kind = kindOf(file);
  return kind === 'lines' || kind === 'blob';
}

function lineFor(file: string, { removed, lines, after, contents }: Change, at: Date) {
  return {
    erasure: Object.keys(removed).join(','),
    at: at.toISOString(),
    file,
    removed: lines,
    records: contents?.records ?? 0,
    bytes: after?.bytes ?? 0,
    sha256: after?.sha256 ?? null,
    first_received_at: contents?.first || null,
    last_received_at: contents?.last || null,
    types: Object.fromEntries(contents?.types ?? []),
  } satisfies Omit<ErasureLine, 'previous'>;
}

/** Whether an error says that a file is not there. */
export function isGone(error: unknown): boolean {
  return isMissing(error) || errorCode(error) === 'ENOENT';
}

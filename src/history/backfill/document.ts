import { jsonOrSame } from '../../lib/parsed.ts';
import { ElementScanner } from '../../tables/ndjson/elements.ts';
import {
  LONGEST_ELEMENT,
  shapeText,
  type ShapeProgress,
  type ShapeTextOptions,
} from '../../tables/ndjson/shape-text.ts';
import { GROUPS, MEAL, tablesOf, type HistoryResource } from '../resources.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import { cursorOf, saysError, saysMore } from '../service/shape.ts';
import type { Task } from './plan.ts';

/** The tables of a document of meals. */
export const MEAL_TABLES = tablesOf(MEAL);

/** A group has the samples of a page, each of which becomes a row. */
const LONGEST_GROUP = 8 * LONGEST_ELEMENT;

export interface ShapeDocumentOptions extends Omit<
  ShapeTextOptions,
  'tables' | 'list' | 'groups' | 'onList' | 'onMember' | 'onDocument' | 'signal'
> {
  /** Also gets the elements of the list, before it is known whether the document is whole. */
  readonly onElements?: OnElements | undefined;
  readonly signal: AbortSignal;
}

/**
 * Fetches a resource of a user and a window, page by page, and shapes it into rows. When it throws, the rows that were written have
 * to be discarded: an answer that is not whole does not say what there is.
 * @throws ServiceError, `answer_malformed` for such an answer; what `shapeText` throws
 */
export async function shapeDocument(
  service: ServiceClient,
  task: Omit<Task, 'index'>,
  { onElements, ...options }: ShapeDocumentOptions,
): Promise<ShapeProgress> {
  const { user, resource } = task;
  const pages = new Pages(service, task, options.signal);
  const isGrouped = resource.list === GROUPS;
  const shaped = await shapeText(
    onElements === undefined ? pages.read() : handingOver(pages.read(), resource, onElements),
    {
      ...options,
      tables: tablesOf(resource),
      ...elementsOf(resource),
      ...(isGrouped ? { longest: LONGEST_GROUP } : {}),
      given: { ...options.given, user_id: user, ...(isGrouped ? { resource: resource.name } : {}) },
      onList: (name) => pages.noteList(name),
      onMember: (name, value) => pages.noteMember(name, value),
      onDocument: () => pages.noteEnd(),
      onReject: (reject) => {
        // These concern the whole document, not a row.
        if (reject.code === 'cut') throw pages.malformed('was cut short');
        if (reject.code === 'broken') throw pages.malformed(`is broken: ${reject.reason}`);
        options.onReject(reject);
      },
    },
  );
  pages.checkLast();
  return shaped;
}

/** Where a scanner finds the elements of a resource. */
function elementsOf({ list }: HistoryResource): { readonly list: string; readonly groups?: string } {
  return list === GROUPS ? { list: '', groups: list } : { list };
}

/** The answers of a task, one after the other; the scanner of their text notes what it finds in each. */
class Pages {
  readonly #service: ServiceClient;
  readonly #task: Omit<Task, 'index'>;
  readonly #signal: AbortSignal;
  #beside: Record<string, unknown> = {};
  #hasList = false;
  #isWhole = false;
  /** Names the page in errors; empty for the first. */
  #name = '';

  constructor(service: ServiceClient, task: Omit<Task, 'index'>, signal: AbortSignal) {
    this.#service = service;
    this.#task = task;
    this.#signal = signal;
  }

  noteList(name: string): void {
    this.#hasList ||= name === this.#task.resource.list;
  }

  noteMember(name: string, value: string): void {
    this.#beside[name] = jsonOrSame(value);
  }

  noteEnd(): void {
    this.#isWhole = true;
  }

  /** @throws ServiceError for an empty answer, and for a page that does not say what follows it */
  async *read(): AsyncGenerator<Buffer> {
    const { user, resource, provider, start, end } = this.#task;
    const range = resource.range === 'none' ? {} : { start, end };
    const followed = new Set<string>();
    for (let cursor: string | undefined; ;) {
      const query = { ...range, provider: provider ?? undefined, cursor };
      this.#hasList = false;
      this.#isWhole = false;
      this.#beside = Object.create(null) as Record<string, unknown>;
      let bytes = 0;
      for await (const chunk of await this.#service.users.data(resource.path, user, query, {
        signal: this.#signal,
      })) {
        bytes += (chunk as Buffer).length;
        yield chunk as Buffer;
      }
      if (bytes === 0) throw this.malformed('was empty');
      const next =
        resource.pages === 'none' || !this.#isWhole ? null : cursorOf({ data: [], ...this.#beside });
      if (next === null) return;
      this.#check();
      if (followed.has(next)) throw this.malformed(`names the cursor ${next} twice: it leads back`, false);
      followed.add(next);
      cursor = next;
      this.#name = `, page ${followed.size + 1} (cursor ${next}),`;
    }
  }

  /** @throws ServiceError when the last page may not be the last, or has no list */
  checkLast(): void {
    this.#check();
    const more = saysMore(this.#beside);
    if (more !== null) throw this.malformed(`has "${more}" beside its list, and may not be whole`, false);
  }

  #check(): void {
    const { list } = this.#task.resource;
    if (!this.#isWhole) throw this.malformed('is not an object');
    if (list !== '' && !this.#hasList) throw this.malformed(`has no list ${list}`);
    const error = saysError(this.#beside);
    if (error !== null) throw this.malformed(`has "${error}" beside its list, and may not be whole`, false);
  }

  /** The page in progress is not as it should be. With a status: that concerns this answer, not a service that is down. */
  malformed(what: string, retryable = true): ServiceError {
    const { user, resource } = this.#task;
    const detail = `the answer for ${user}${this.#name} ${what}`;
    const operation = resource.list === GROUPS ? `${resource.name} series` : `${resource.name} summary`;
    return new ServiceError({ code: 'answer_malformed', operation, status: 200, detail, retryable });
  }
}

/** Gets the exact bytes of some elements; the next part of the document is read once it has resolved. */
export type OnElements = (elements: readonly Buffer[]) => Promise<void>;

/** The same document, whose list is handed over element by element. `shapeText` reports what is not valid. */
async function* handingOver(
  document: AsyncIterable<Buffer>,
  resource: HistoryResource,
  onElements: OnElements,
): AsyncGenerator<Buffer> {
  const { list, groups } = elementsOf(resource);
  const elements: Buffer[] = [];
  let inList = resource.list === '';
  const scanner = new ElementScanner({
    containers: [list],
    groups,
    longest: groups === undefined ? LONGEST_ELEMENT : LONGEST_GROUP,
    onList: () => (inList = true),
    // A copy: the bytes are a view of a chunk.
    onElement: (bytes) => void (inList && elements.push(Buffer.from(bytes))),
    onFault: () => undefined,
  });
  const handOver = async (): Promise<void> => {
    if (elements.length > 0) await onElements(elements.splice(0));
  };
  for await (const chunk of document) {
    scanner.push(chunk);
    await handOver();
    yield chunk;
  }
  scanner.end();
  await handOver();
}

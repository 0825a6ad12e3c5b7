import { ByteWriter } from '../lib/byte-writer.ts';
import { JsonFault } from '../lib/json-text.ts';
import type { TableDefinition } from '../warehouse/definition.ts';
import { Shaper } from '../warehouse/shape/shape.ts';
import type { Tables } from '../warehouse/tables.ts';
import { documentsIn } from './documents.ts';

/** Tells which events the tables have rows for. */
export class Coverage {
  readonly #tables: Tables;
  readonly #shapers = new Map<TableDefinition, Shaper>();
  #spare = new ByteWriter();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** The type tells most; where a table is only a frame around rows, the shape does. */
  has(type: string, body: Buffer): boolean {
    return this.#tables
      .documentsOf(type)
      .some((document) => document.ownRows !== false || this.#fits(document, body));
  }

  #fits(document: TableDefinition, body: Buffer): boolean {
    const { events, nested = [] } = document;
    if (events === undefined) return false;
    const tables = nested.map(({ table }) => table.name);
    const shaper =
      this.#shapers.get(document) ??
      new Shaper({ definition: document, document }, { tables, onReject: () => undefined });
    this.#shapers.set(document, shaper);
    try {
      return documentsIn(body, events).every((one) => one !== null && shaper.shape(one));
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return false;
    } finally {
      for (const table of tables) this.#spare = shaper.take(table, this.#spare);
    }
  }
}

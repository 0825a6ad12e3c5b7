import { isUtf8 } from 'node:buffer';
import { nameKind } from '../../../core/data-names.ts';
import { JsonFault, skipValue } from '../../../lib/json-text.ts';
import type { ColumnType } from '../../definition.ts';
import { readColumn } from '../../shape/column-types.ts';
import { seemsMap } from './maps.ts';
import { type Kind, SeenField } from './seen-field.ts';
import { Walk } from './walk.ts';

/** With so many names of one object they can be data; with more than the most, they are. */
const ASKED_AT = 512;
const MOST_NAMES = 1024;

/** Fields that may still be remembered, over all tables, so that memory has a bound. */
export interface Budget {
  left: number;
}

/** Columns that may take a text or a number, the narrowest first. */
const TEXTS = ['date', 'timestamp'] as const satisfies readonly (ColumnType & Kind)[];
const NUMBERS = ['integer', 'decimal'] as const satisfies readonly (ColumnType & Kind)[];

/** Reads documents and remembers their fields: names, types and counts. */
export class Observer {
  readonly root = new SeenField();
  /** Documents that are not valid JSON. */
  unreadable = 0;
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** @param document one JSON value, with nothing around it */
  add(document: Buffer): void {
    try {
      // All of it is checked first, so that an invalid document is not counted in parts.
      if (skipValue(document, 0, 1) !== document.length || !isUtf8(document)) this.unreadable += 1;
      else {
        this.root.seen += 1;
        new ColumnWalk(document, this.#budget).value(this.root, 0, 1);
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      this.unreadable += 1;
    }
  }
}

/** Finds the kind of a value as the shaper does, so that the learned column takes it. */
class ColumnWalk extends Walk {
  readonly #budget: Budget;

  constructor(document: Buffer, budget: Budget) {
    super(document);
    this.#budget = budget;
  }

  protected override textAt(bytes: Buffer, at: number): Kind {
    return TEXTS.find((type) => readColumn(type, bytes, at, 1) !== 0) ?? 'text';
  }

  protected override numberAt(bytes: Buffer, at: number): Kind {
    return NUMBERS.find((type) => readColumn(type, bytes, at, 1) > 0) ?? 'huge';
  }

  protected override memberOf(around: SeenField, name: string, nth: number): SeenField | null {
    const known = around.members?.get(name);
    if (known !== undefined) return known;
    if (!around.isMap && nameKind(name) !== 'data') {
      const size = around.members?.size ?? 0;
      if (size < MOST_NAMES && (size !== ASKED_AT || !seemsMap(around))) {
        const member = this.add(name, around, nth);
        if (member !== null) (around.members ??= new Map()).set(name, member);
        return member;
      }
      around.collapse();
    }
    around.values ??= this.add(null, around, nth);
    return around.values;
  }

  protected override add(name: string | null, around: SeenField, since: number): SeenField | null {
    if (this.#budget.left <= 0) return null;
    this.#budget.left -= 1;
    return new SeenField(name, around, 0, since);
  }
}

import { isNode, LineCounter, parseDocument } from 'yaml';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Path } from './paths.ts';

/** A parsed file that still knows where each value stood. */
export interface Document {
  readonly value: unknown;
  /** Its name in messages. */
  readonly file: string;
  /** Where the value at a path stands, or the nearest thing around it that exists; nulls when there is none. */
  locate(path: Path): { readonly line: number | null; readonly column: number | null };
}

/**
 * Parses YAML 1.2; aliases and anchors work, duplicate keys are errors.
 * @param file only for messages.
 * @throws MillraceError config_invalid with every syntax error, a line each.
 */
export function parseYaml(text: string, file: string): Document {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): { line: number; column: number } => {
    const { line, col: column } = lines.linePos(offset);
    return { line, column };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new MillraceError(
      'config_invalid',
      faults
        .map(({ pos: [start], message }) => `${file}:${at(start).line}:${at(start).column}: ${message}`)
        .join('\n'),
    );
  }
  return { value: toValue(), file, locate };

  function toValue(): unknown {
    try {
      return document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      throw new MillraceError('config_invalid', `${file}: ${messageOf(error)}`, { cause: error });
    }
  }

  function locate(path: Path): ReturnType<Document['locate']> {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return at(node.range[0]);
    }
    return { line: null, column: null };
  }
}

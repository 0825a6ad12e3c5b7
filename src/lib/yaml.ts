import { isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml';

/** A parsed text, with the position of each value. */
export interface YamlText {
  readonly value: unknown;
  /** Position of the value at a path, or of the nearest existing one around it; nulls without one. */
  locate(path: readonly (string | number)[]): {
    readonly line: number | null;
    readonly column: number | null;
  };
}

/** The text is not valid YAML. */
export class YamlFault extends Error {
  /** Such as `3:7: what is wrong`; without a position when it is about the whole text. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[], options?: ErrorOptions) {
    super(faults.join('; '), options);
    this.name = 'YamlFault';
    this.faults = faults;
  }
}

/**
 * Parses YAML 1.2; aliases and anchors work, duplicate keys are errors.
 * @throws YamlFault with every syntax error
 */
export function parseYamlText(text: string): YamlText {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): { line: number; column: number } => {
    const { line, col: column } = lines.linePos(offset);
    return { line, column };
  };
  const faults = [...document.errors, ...document.warnings].map(({ pos: [start], code, message }) => {
    if (code === 'BAD_ALIAS')
      return { ...at(start), message: 'a value that begins with * must be in quotes' };
    if (code === 'DUPLICATE_KEY')
      return {
        ...at(start),
        message: `${keyAt(text, start)}: keys must be unique, and this one is there already`,
      };
    if (code === 'MULTIPLE_DOCS')
      return { ...at(start), message: 'another document begins here: only one is read' };
    const advice = wantsQuotes(code, text, start) ? QUOTE : code === 'BAD_DQ_ESCAPE' ? SINGLE : '';
    return { ...at(start), message: `${message}${advice}` };
  });
  visit(document, {
    Pair: (_, { key }) => {
      // Parsers of objects pass over it.
      if (isScalar(key) && key.value === '__proto__')
        faults.push({ ...at(key.range?.[0] ?? 0), message: '__proto__: is not a known key' });
    },
  });
  // Further faults of a line follow from its first.
  const first = faults.filter(
    ({ line }, index) => faults.findIndex((fault) => fault.line === line) === index,
  );
  if (first.length > 0)
    throw new YamlFault(first.map(({ line, column, message }) => `${line}:${column}: ${message}`));
  return { value: toValue(), locate };

  function toValue(): unknown {
    try {
      return document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      visit(document, {
        Alias: (_, node) => {
          const { line, column } = at(node.range?.[0] ?? 0);
          if (node.resolve(document) !== undefined) return;
          throw new YamlFault([`${line}:${column}: *${node.source} names no anchor${QUOTE}`], {
            cause: error,
          });
        },
      });
      throw new YamlFault([error instanceof Error ? error.message : String(error)], { cause: error });
    }
  }

  function locate(path: readonly (string | number)[]): ReturnType<YamlText['locate']> {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return at(node.range[0]);
    }
    return { line: null, column: null };
  }
}

/** The parts of a text that can be read, whatever is wrong with the others; null when there are none. */
export function readYamlLoosely(text: string): unknown {
  const document = parseDocument(text, { stringKeys: true, uniqueKeys: false, logLevel: 'silent' });
  visit(document, { Alias: () => visit.REMOVE });
  return document.toJS() as unknown;
}

/** The key that begins there. */
function keyAt(text: string, start: number): string {
  const [, quoted, plain = ''] = /^(?:["'](.*?)["']|(.*?))\s*:/.exec(text.slice(start)) ?? [];
  return quoted ?? plain;
}

const QUOTE = ': put the value in quotes';
const SINGLE = ': put the value in single quotes';

/** Whether a fault is about a character that is meant literally, such as a star, `${` inside brackets, or a colon and a space. */
function wantsQuotes(code: string, text: string, start: number): boolean {
  if (/^(BAD_SCALAR_START|TAG_RESOLVE_FAILED|BLOCK_IN_FLOW)$/.test(code)) return true;
  if (code === 'BLOCK_AS_IMPLICIT_KEY') return /^[^\n]*: /.test(text.slice(start));
  return text.slice(start - 1, start + 1) === '${' || /: [>|] $/.test(text.slice(0, start));
}

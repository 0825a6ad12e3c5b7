import { isNode, LineCounter, parseDocument } from 'yaml';

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
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new YamlFault(
      faults.map(({ pos: [start], message }) => `${at(start).line}:${at(start).column}: ${message}`),
    );
  }
  return { value: toValue(), locate };

  function toValue(): unknown {
    try {
      return document.toJS({ maxAliasCount: 100 });
    } catch (error) {
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

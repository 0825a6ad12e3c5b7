import { MillraceError } from '../core/errors.ts';
import { parseYamlText, YamlFault, type YamlText } from '../lib/yaml.ts';

/** A parsed file that still knows where each value stood. */
export interface Document extends YamlText {
  /** Its name in messages. */
  readonly file: string;
}

/**
 * Parses YAML 1.2; aliases and anchors work, duplicate keys are errors.
 * @param file only for messages.
 * @throws MillraceError config_invalid with every syntax error, a line each.
 */
export function parseYaml(text: string, file: string): Document {
  try {
    return { ...parseYamlText(text), file };
  } catch (error) {
    if (!(error instanceof YamlFault)) throw error;
    const lines = error.faults.map((fault) => `${file}:${/^\d/.test(fault) ? '' : ' '}${fault}`);
    throw new MillraceError('config_invalid', lines.join('\n'), { cause: error });
  }
}

import convict from 'convict';
import { messageOf } from '../core/errors.ts';
import { convictFormats } from './formats.ts';
import type { Parsed } from './leaf.ts';
import { keyOf, type Mapping, type Problem } from './paths.ts';
import { isLeaf, SCALAR_KEYS, scalarAt } from './scalar-keys.ts';
import { SCALARS } from './scalars.ts';

export type Scalars = Parsed<typeof SCALARS>;
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Environment over file over default. The document must hold known keys only (see shape.ts).
 * An empty variable counts as unset: an empty token or path is never meant. A value that does not fit comes back as its
 * default, so that the rest can be checked too.
 */
export function parseScalars(document: Mapping, env: Environment): { values: Scalars; problems: Problem[] } {
  convict.addFormats(convictFormats());
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- convict cannot see that the tree matches its type
  const schema = convictSchema() as unknown as convict.Schema<Scalars>;
  const config = convict<Scalars>(schema, {
    env: set,
    args: [],
  });
  config.load(document);
  const problems = validate(config, set);
  for (const { path } of problems) config.set(keyOf(path), scalarAt(path)?.leaf.default);
  return { values: config.getProperties(), problems };
}

/** convict reports all that is wrong in one message, a line each: `server.port: must be …: value was "x"`. */
function validate(config: convict.Config<Scalars>, env: Environment): Problem[] {
  try {
    config.validate({ allowed: 'strict' });
    return [];
  } catch (error) {
    const lines = messageOf(error).split('\n');
    return lines.map((line) => {
      const [, key = '', message = line] = /^([\w.]+): (.*?)(?:: value was .*)?$/.exec(line) ?? [];
      const scalar = SCALAR_KEYS.find((candidate) => candidate.key === key);
      const problem = { path: key === '' ? [] : key.split('.'), message };
      return scalar !== undefined && env[scalar.env] !== undefined
        ? { ...problem, env: scalar.env }
        : problem;
    });
  }
}

function convictSchema(): Mapping {
  const names = new Map(SCALAR_KEYS.map((scalar) => [scalar.leaf, scalar.env]));
  const convert = (node: object): Mapping =>
    Object.fromEntries(
      Object.entries(node).map(([key, child]: [string, object]) => [
        key,
        isLeaf(child) ? { ...child, env: names.get(child) } : convert(child),
      ]),
    );
  return convert(SCALARS);
}

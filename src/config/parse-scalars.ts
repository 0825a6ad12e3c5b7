import convict from 'convict';
import { isField, type Field } from '../lib/fields.ts';
import { keyOf, type Mapping, type Path, type Problem } from './paths.ts';
import { scalarAt } from './scalar-keys.ts';
import { SCALARS } from './scalars.ts';

/** The parsed shape of a tree of fields. */
type Parsed<Tree> = {
  readonly [Key in keyof Tree]: Tree[Key] extends Field<infer T> ? T : Parsed<Tree[Key]>;
};

export type Scalars = Parsed<typeof SCALARS>;
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Environment over file over default, as convict layers them; each value is then read by its field. The document must hold
 * known keys only (see shape.ts). An empty variable counts as unset: an empty token or path is never meant. A value that
 * does not fit comes back as its default, so that the rest can be checked too.
 */
export function parseScalars(document: Mapping, env: Environment): { values: Scalars; problems: Problem[] } {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tree is told by walking it
  const schema = mapFields(SCALARS, toConvict) as convict.Schema<Mapping>;
  const layers = convict<Mapping>(schema, { env: set, args: [] }).load(document);
  const problems: Problem[] = [];
  const values = mapFields(SCALARS, (field, path) => {
    const result = field.safeParse(layers.get(keyOf(path)));
    if (result.success) return result.data;
    const variable = scalarAt(path)?.env ?? '';
    const from = set[variable] === undefined ? {} : { env: variable };
    problems.push({ path, message: result.error.issues[0]?.message ?? 'is not valid', ...from });
    return field.parse(undefined);
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tree is told by walking it
  return { values: values as Scalars, problems };
}

function toConvict(field: Field<unknown>, path: Path): Mapping {
  return {
    doc: field.description,
    format: '*',
    default: field.def.defaultValue,
    env: scalarAt(path)?.env,
    nullable: true,
  };
}

/** The same tree with something else in place of each field. */
function mapFields(
  node: object,
  replace: (field: Field<unknown>, path: Path) => unknown,
  path: Path = [],
): Mapping {
  return Object.fromEntries(
    Object.entries(node).map(([key, child]: [string, object]) => {
      const here = [...path, key];
      return [key, isField(child) ? replace(child, here) : mapFields(child, replace, here)];
    }),
  );
}

import { text, type Field } from '../lib/fields.ts';
import { DEFAULT_PATHS, parametersOf, type PathName } from './paths.ts';

/** The paths of the service's operations, as keys of a config. */
export const PATH_FIELDS = Object.fromEntries(
  Object.entries(DEFAULT_PATHS).map(([name, path]) => {
    const parameters = parametersOf(path);
    const hint = ['must start with /, have no query', ...parameters].join(' and contain ');
    return [name, text(path, `Path of the operation \`${name}\`.`, { pattern: patternOf(parameters), hint })];
  }),
) as Record<PathName, Field<string>>;

/** Each of the parameters, and no other. */
function patternOf(parameters: readonly string[]): string {
  const escaped = parameters.map((parameter) => parameter.replace('{', '\\{').replace('}', '\\}'));
  const each = escaped.map((parameter) => `(?=.*${parameter})`).join('');
  return `^${each}/(?:${['[^?#\\s{}]', ...escaped].join('|')})*$`;
}

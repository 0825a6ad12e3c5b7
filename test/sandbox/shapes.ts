/**
 * Where a value is not of a shape: `{ a: text, b~: number?, c: [bool], d: map of text }`. A member with `~` may be missing, a
 * value with `?` may be null, and other members may be there too.
 */
export function misfits(shape: string, value: unknown): string[] {
  const tokens = shape.match(/map of|\w+|[{}[\]:,?~]/g) ?? [];
  let at = 0;
  const accept = (token: string): boolean => tokens[at] === token && at++ >= 0;
  const read = (): Check => {
    const check = readOne();
    return accept('?') ? (one, path) => (one === null ? [] : check(one, path)) : check;
  };
  const readOne = (): Check => {
    if (accept('map of')) {
      const each = read();
      return (one, path) =>
        isObject(one)
          ? Object.entries(one).flatMap(([name, inner]) => each(inner, `${path}.${name}`))
          : [path];
    }
    if (accept('[')) {
      const each = read();
      accept(']');
      return (one, path) =>
        Array.isArray(one) ? one.flatMap((inner, n) => each(inner, `${path}[${n}]`)) : [path];
    }
    if (accept('{')) {
      const members: { name: string; optional: boolean; check: Check }[] = [];
      while (!accept('}')) {
        const name = tokens[at++] ?? '';
        const optional = accept('~');
        accept(':');
        members.push({ name, optional, check: read() });
        accept(',');
      }
      return (one, path) => {
        if (!isObject(one)) return [path];
        return members.flatMap(({ name, optional, check }) =>
          name in one ? check(one[name], `${path}.${name}`) : optional ? [] : [`${path}.${name} is missing`],
        );
      };
    }
    const type = tokens[at++] ?? '';
    return (one, path) => (isOf(type, one) ? [] : [`${path} is not ${type}`]);
  };
  return read()(value, '');
}

type Check = (value: unknown, path: string) => string[];

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'any') return true;
  if (type === 'timestamp')
    return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*\+00:00$/.test(value);
  return typeof value === { text: 'string', number: 'number', bool: 'boolean' }[type];
}

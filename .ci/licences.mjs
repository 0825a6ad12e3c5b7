// Holds that every package that is installed with the program has a licence that Apache-2.0 software may depend on.
import { readFileSync } from 'node:fs';

const ALLOWED = new Set([
  'Apache-2.0',
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
]);
const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
/** Where a package that another one asks for lies: in its own `node_modules`, or in those around it. */
function placeOf(name, from) {
  for (let around = from; ; around = around.slice(0, Math.max(0, around.lastIndexOf('node_modules/') - 1))) {
    const place = `${around === '' ? '' : `${around}/`}node_modules/${name}`;
    if (packages[place] !== undefined || around === '') return place;
  }
}
// The lock file calls a package that is optional and a tool of this repository too a tool only; so they are followed.
const shipped = new Map();
const open = [''];
for (let from = open.pop(); from !== undefined; from = open.pop()) {
  const { dependencies, optionalDependencies, peerDependencies } = packages[from];
  for (const name of Object.keys({
    ...dependencies,
    ...optionalDependencies,
    ...(from === '' ? {} : peerDependencies),
  })) {
    const place = placeOf(name, from);
    if (packages[place] === undefined || shipped.has(place)) continue;
    shipped.set(place, packages[place]);
    open.push(place);
  }
}
/** One of several that are offered is enough. */
const isAllowed = (licence = 'none') =>
  licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((each) => each.split(' AND ').every((part) => ALLOWED.has(part)));
const others = [...shipped].filter(([, { license }]) => !isAllowed(license));
for (const [path, { license }] of others) process.stderr.write(`${path}: ${license ?? 'no licence'}\n`);
process.stdout.write(`licences: ${shipped.size} packages, ${others.length} not allowed\n`);
process.exitCode = others.length === 0 ? 0 : 1;

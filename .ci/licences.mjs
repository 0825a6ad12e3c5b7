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
const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
/** One of several that are offered is enough. */
const isAllowed = (licence = 'none') =>
  licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((each) => each.split(' AND ').every((part) => ALLOWED.has(part)));
const others = shipped.filter(([, { license }]) => !isAllowed(license));
for (const [path, { license }] of others) process.stderr.write(`${path}: ${license ?? 'no licence'}\n`);
process.stdout.write(`licences: ${shipped.length} packages, ${others.length} not allowed\n`);
process.exitCode = others.length === 0 ? 0 : 1;

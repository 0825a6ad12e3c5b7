import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An authority and what it has signed, in PEM; new each time. Needs openssl. */
export function certificates(): Record<'ca' | 'server' | 'serverKey' | 'client' | 'clientKey', string> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-certificates-'));
  const openssl = (line: string): Buffer =>
    execFileSync('openssl', line.split(' '), { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  const key = 'ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc';
  openssl(`req -x509 -newkey ${key} -keyout ca.key -out ca.pem -subj /CN=made-up-ca -days 2`);
  for (const [name, more] of [
    ['server', '-addext subjectAltName=IP:127.0.0.1'],
    ['client', '-addext extendedKeyUsage=clientAuth'],
  ])
    openssl(
      `req -x509 -newkey ${key} -CA ca.pem -CAkey ca.key -keyout ${name}.key -out ${name}.pem -subj /CN=${name} -days 2 -addext basicConstraints=critical,CA:FALSE ${more}`,
    );
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const made = {
    ca: read('ca.pem'),
    server: read('server.pem'),
    serverKey: read('server.key'),
    client: read('client.pem'),
    clientKey: read('client.key'),
  };
  rmSync(folder, { recursive: true });
  return made;
}

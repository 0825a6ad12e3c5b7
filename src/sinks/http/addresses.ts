import { lookup as resolve, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Networks that are not on the internet: this machine, private, link-local (with the metadata services of clouds), reserved. */
const PRIVATE = networks([
  ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ['192.0.0.0/24', '192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ['224.0.0.0/3', '::/127', 'fc00::/7', 'fe80::/9', 'ff00::/8', '100::/64', '2001:db8::/32', '3fff::/20'],
  // Addresses of version 6 that contain one of version 4, which can be any of the above.
  ['64:ff9b::/96', '64:ff9b:1::/48', '::ffff:0:0:0/96', '2001::/23', '2002::/16', '::/96'],
]);

/** Which addresses requests may go to. */
export interface AddressRules {
  readonly allowed: BlockList;
  /** True without TLS: the address must be one of `allowed`. */
  readonly plain: boolean;
}

/** The signature of `dns.lookup` with `all`. */
export type Resolve = (
  host: string,
  options: { readonly all: true; readonly family?: number },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** An address that a request must not go to. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/** @throws Error that names the text which is no network */
export function networks(lists: readonly (readonly string[])[]): BlockList {
  const list = new BlockList();
  for (const text of lists.flat()) {
    const [address = '', bits, ...rest] = text.split('/');
    const version = isIP(address);
    const most = version === 4 ? 32 : 128;
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (version === 0 || rest.length > 0 || !(prefix <= most))
      throw new Error(`${JSON.stringify(text)} is no network such as 10.0.0.0/8, and no address`);
    list.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** Why a request must not go to an address; null when it may. */
export function problemWith(address: string, { allowed, plain }: AddressRules): string | null {
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  if (allowed.check(address, family)) return null;
  if (PRIVATE.check(address, family))
    return `${address} is a private address; if that is meant, add it to privateNetworks`;
  return plain ? `${address} is not in privateNetworks, and elsewhere only https is allowed` : null;
}

/**
 * Resolves a host for a connection, and refuses it when one of its addresses must not be reached. The connection is made to
 * the checked addresses, so a name that resolves differently a moment later changes nothing.
 */
export function checkedLookup(rules: AddressRules, by: Resolve = resolve): LookupFunction {
  return (host, options, callback) => {
    const family = typeof options.family === 'number' ? { family: options.family } : {};
    by(host, { ...family, all: true }, (error, addresses) => {
      const problem = addresses
        ?.map(({ address }) => problemWith(address, rules))
        .find((one) => one !== null);
      const [first] = addresses ?? [];
      if (error !== null) callback(error, '');
      else if (problem !== undefined) callback(new AddressRefused(`${host}: ${problem}`), '');
      else if (first === undefined) callback(new AddressRefused(`${host} has no address`), '');
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

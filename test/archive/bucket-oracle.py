"""What lies in a bucket, told without any of the program's code.

Arguments: endpoint bucket prefix needle...
Prints JSON: {"problems": [...], "files": n, "records": n, "found": [keys of objects, in any version, that hold a needle]}
"""

import gzip
import hashlib
import json
import re
import sys
from collections import defaultdict

import boto3

endpoint, bucket, prefix, *needles = sys.argv[1:]
s3 = boto3.client(
    "s3",
    endpoint_url=endpoint,
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="test",
)


def sha(data):
    return hashlib.sha256(data).hexdigest()


present, found = {}, set()
for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix + "/"):
    for version in page.get("Versions", []):
        key = version["Key"][len(prefix) + 1 :]
        data = s3.get_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])["Body"].read()
        if version["IsLatest"]:
            present[key] = data
        plain = gzip.decompress(data) if key.endswith(".gz") else data
        if any(needle.encode() in plain or needle in key for needle in needles):
            found.add(key)

problems, chains = [], defaultdict(list)
for key in present:
    match = re.fullmatch(r"_manifest/([0-9a-f]{12})/(\d{10})-(\d{10})\.jsonl", key)
    if match:
        chains[match[1]].append((int(match[2]), -int(match[3]), key))

newest, erasures = {}, []
for writer, segments in chains.items():
    reached, before = 0, sha(b"")
    for first, last, key in sorted(segments):
        if -last <= reached:
            continue
        if first != reached + 1:
            problems.append(f"{key}: begins with {first} after {reached}")
        lines = present[key].splitlines()
        if len(lines) != -last - first + 1:
            problems.append(f"{key}: {len(lines)} lines")
        reached = -last
        for line in lines:
            entry = json.loads(line)
            if entry["previous"] != before:
                problems.append(f"{key}: does not follow")
            before = sha(line)
            if "erasure" in entry:
                erasures.append(entry)
            else:
                newest[entry["file"]] = entry
for entry in sorted(erasures, key=lambda entry: entry["at"]):
    newest[entry["file"]] = entry

records = 0
for file, entry in newest.items():
    if entry["sha256"] is None:
        if file in present:
            problems.append(f"{file}: is there")
        continue
    data = present.get(file, b"")
    if (len(data), sha(data)) != (entry["bytes"], entry["sha256"]):
        problems.append(f"{file}: other bytes")
    if ".ndjson" in file:
        held = len(gzip.decompress(data).splitlines())
        records += held
        if held != entry["records"]:
            problems.append(f"{file}: {held} records")
for key in present:
    if (".ndjson" in key or key.startswith("claim-checks/")) and key not in newest:
        problems.append(f"{key}: is not listed")

print(json.dumps({"problems": problems, "files": len(newest), "records": records, "found": sorted(found)}))

"""The archive of an image: its parts, by their digests, and what anybody can see in them without running it."""
import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile

SBOM = './usr/share/pgawait/sbom.spdx.json'


class Damaged(Exception):
    """A part is not what its digest says."""


class Archive:
    """Raises Damaged, or KeyError for a part that is missing."""

    def __init__(self, path):
        self.path = path
        with tarfile.open(path) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        if json.loads(self.files['oci-layout']) != {'imageLayoutVersion': '1.0.0'}:
            raise Damaged('oci-layout')
        self.entry, = json.loads(self.files['index.json'])['manifests']
        self.manifest = json.loads(self.blob(self.entry))
        self.config = json.loads(self.blob(self.manifest['config']))
        self.layers = [gzip.decompress(self.blob(layer)) for layer in self.manifest['layers']]
        for layer, digest in zip(self.layers, self.config['rootfs']['diff_ids'], strict=True):
            if 'sha256:' + hashlib.sha256(layer).hexdigest() != digest:
                raise Damaged(f'a layer is not {digest}')
        used = {'oci-layout', 'index.json', 'manifest.json',
                *(self.name(part) for part in (self.entry, self.manifest['config'], *self.manifest['layers']))}
        if used != set(self.files):
            raise Damaged(f'nobody refers to {set(self.files) - used}')

    @staticmethod
    def name(descriptor):
        return 'blobs/' + descriptor['digest'].replace(':', '/')

    def blob(self, descriptor):
        data = self.files[self.name(descriptor)]
        if len(data) != descriptor['size'] or 'sha256:' + hashlib.sha256(data).hexdigest() != descriptor['digest']:
            raise Damaged(f'not what its digest says: {descriptor}')
        return data

    def root(self):
        """{path: TarInfo} of all layers, and a function that reads a file."""
        members, holders = {}, {}
        for layer in self.layers:
            tar = tarfile.open(fileobj=io.BytesIO(layer))
            for member in tar:
                members[member.name.rstrip('/')], holders[member.name.rstrip('/')] = member, tar
        return members, lambda path: holders[path].extractfile(members[path]).read()


def spdx_faults(document, installed):
    """What is wrong with a document that should list {(name, version)}."""
    identifiers = [package['SPDXID'] for package in document['packages']]
    known = {*identifiers, document['SPDXID']}
    listed = {(package['name'], package['versionInfo']) for package in document['packages']}
    whole, = [edge['relatedSpdxElement'] for edge in document['relationships'] if edge['relationshipType'] == 'DESCRIBES']
    contained = {edge['relatedSpdxElement'] for edge in document['relationships'] if edge['relationshipType'] == 'CONTAINS'}
    purls = [reference['referenceLocator'] for package in document['packages']
             for reference in package.get('externalRefs', ())]
    faults = {
        'its version': document['spdxVersion'] == 'SPDX-2.3' and document['dataLicense'] == 'CC0-1.0',
        'its namespace': re.match(r'[a-z]+:\S+$', document['documentNamespace']),
        'its time': re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', document['creationInfo']['created']),
        'identifiers': len(set(identifiers)) == len(identifiers) and
                       all(re.fullmatch('SPDXRef-[A-Za-z0-9.-]+', identifier) for identifier in identifiers),
        'relationships': known >= {edge[end] for edge in document['relationships']
                                   for end in ('spdxElementId', 'relatedSpdxElement')},
        'what is contained': contained == set(identifiers) - {whole},
        'packages': installed <= listed and len(listed) == len(installed) + 1,
        'purls': len(purls) == len(installed) and all(re.fullmatch(r'pkg:deb/[a-z]+/[a-z0-9.%2B-]+@\S+', purl) for purl in purls),
        'fields': all({'name', 'downloadLocation', 'supplier', 'licenseDeclared'} <= set(package)
                      for package in document['packages']),
    }
    return [what for what, holds in faults.items() if not holds]


def installed(status):
    """{(name, version)} of dpkg's list."""
    return {(re.search('^Package: (.*)$', stanza, re.M)[1], re.search('^Version: (.*)$', stanza, re.M)[1])
            for stanza in status.decode().split('\n\n') if '\nStatus: install ok installed\n' in stanza}


def inspected(path, transport):
    """What skopeo tells of an image, or None."""
    done = subprocess.run(['skopeo', 'inspect', f'{transport}:{path}'], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None

# A host with its own libvirtd, in namespaces of its own: the test has made them. Nothing outside of DIR is written.
set -e
unpacked=$1
mount -t tmpfs tmpfs DIR/own
mkdir DIR/own/etc DIR/own/work
ip link set lo up
mount -t overlay -o "lowerdir=$unpacked/etc:/etc,upperdir=DIR/own/etc,workdir=DIR/own/work" overlay /etc
mount -t overlay -o "lowerdir=$unpacked/usr:/usr" overlay /usr
# Packages also have files in directories that are links into /usr.
for directory in lib bin sbin; do
    if [ -d "$unpacked/$directory" ]; then
        mount -t overlay -o "lowerdir=$unpacked/$directory:/usr/$directory" overlay "/usr/$directory"
    fi
done
for directory in /run /var/lib /var/cache /var/log; do mount -t tmpfs tmpfs "$directory"; done

# libvirtd does not start without the users of its package.
for group in libvirt:64990 kvm:64991 libvirt-qemu:64992; do
    grep -q "^${group%:*}:" /etc/group || echo "${group%:*}:x:${group#*:}:" >>/etc/group
done
grep -q ^libvirt-qemu: /etc/passwd || echo 'libvirt-qemu:x:64992:64991::/nonexistent:/usr/sbin/nologin' >>/etc/passwd
mkdir -p /etc/libvirt
cat >/etc/libvirt/libvirtd.conf <<END
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:file:DIR/libvirtd.log"
END
cat >/etc/libvirt/qemu.conf <<END
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
dynamic_ownership = 0
remember_owner = 0
END

# The address that every guest asks, and a network interface for each guest that polls.
ip addr add 169.254.169.254/32 dev lo
number=1
for guest in web spot; do
    number=$((number + 1))
    ip tuntap add dev "tap-$guest" mode tap
    ip link set "tap-$guest" up
    ip route add "169.254.0.$number" dev "tap-$guest" src 169.254.169.254
done

# The guest: busybox, modules for the power button and the network in the order of their needs, and its only program.
mkdir -p DIR/own/guest/bin DIR/own/guest/modules
cp "$(command -v busybox)" DIR/own/guest/bin/busybox
cp DIR/guest-init DIR/own/guest/init
chmod 755 DIR/own/guest/init
number=10
for module in button evdev virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover \
    net_failover virtio_net; do
    number=$((number + 1))
    cp "$(find "$unpacked/lib/modules" "$unpacked/usr/lib/modules" -name "$module.ko" 2>/dev/null)" \
        "DIR/own/guest/modules/$number-$module.ko"
done
(cd DIR/own/guest && find . | busybox cpio -o -H newc >DIR/initrd)
cp "$unpacked"/boot/vmlinuz-* DIR/kernel
# This shell is the first process of its namespace: while it waits, it also collects guests that have ended.
libvirtd &
wait
